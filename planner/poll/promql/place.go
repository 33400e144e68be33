package promql

import (
	"slices"
	"text/template/parse"
)

// place is where in a query something stands: in a string, in a comment, or in neither.
type place struct {
	in      byte // the quote that ends the string, '#' in a comment, 0 in neither
	escaped bool // a backslash stands before it
}

// after is the place behind a text that begins here. left says that the text ends the string or comment that it begins
// in.
func (p place) after(text string) (end place, left bool) {
	for i := range len(text) {
		c, was := text[i], p.in
		p = p.next(c)
		left = left || was != 0 && p.in == 0
	}
	return p, left
}

func (p place) next(c byte) place {
	switch {
	case p.escaped:
		return place{in: p.in}
	case p.in == 0 && slices.Contains([]byte("\"'`#"), c):
		return place{in: c}
	case p.in == '#' && c == '\n', p.in != '#' && p.in == c:
		return place{}
	case c == '\\' && (p.in == '"' || p.in == '\''):
		return place{in: p.in, escaped: true}
	}
	return p
}

// keeps is the function behind each action that gives text.
const keeps = "_keepsItsPlace"

// watch has keepsItsPlace look at what each action gives.
func watch(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 { // a variable's gives nothing
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{
					NodeType: parse.NodeCommand, Pos: n.Pos,
					Args: []parse.Node{parse.NewIdentifier(keeps).SetPos(n.Pos)},
				})
			}
		case *parse.IfNode:
			watch(n.List)
			watch(n.ElseList)
		case *parse.WithNode:
			watch(n.List)
			watch(n.ElseList)
		}
	}
}
