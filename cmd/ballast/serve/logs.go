package serve

import (
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"ballast/cmd/ballast/say"
	"ballast/planner/printable"
)

// LogOptions are the logging flags of the long-running commands.
type LogOptions struct {
	level  int
	format string
}

// Register adds the flags.
func (o *LogOptions) Register(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&o.level, "verbosity", "v", 0, "log detail: 0 = changes and errors, 1 = every cycle and call")
	cmd.Flags().StringVar(&o.format, "log-format", "json", "json for machines, console for people")
}

// Logger writes to standard error; standard output belongs to results.
func (o *LogOptions) Logger() (logr.Logger, error) { return o.loggerTo(os.Stderr) }

// loggerTo logs what clusters, Secrets, annotations and Leases hold as a terminal may see it: every line goes through a
// the last gate, and a message is one line.
func (o *LogOptions) loggerTo(w io.Writer) (logr.Logger, error) {
	if o.level < 0 || o.level > 9 {
		return logr.Logger{}, fmt.Errorf("--verbosity: %d is not between 0 and 9", o.level)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	var encoder zapcore.Encoder
	switch o.format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is neither json nor console", o.format)
	}
	sink := zapcore.Lock(zapcore.AddSync(say.Clean(w)))
	core := zapcore.NewCore(oneLineEncoder{encoder}, sink, zap.NewAtomicLevelAt(zapcore.Level(-o.level)))
	return zapr.NewLogger(zap.New(core)), nil
}

// oneLineEncoder keeps a message of a library that has an object's text in it from making lines of its own; values are
// quoted by every encoder.
type oneLineEncoder struct{ zapcore.Encoder }

// Clone implements zapcore.Encoder.
func (e oneLineEncoder) Clone() zapcore.Encoder { return oneLineEncoder{e.Encoder.Clone()} }

// EncodeEntry implements zapcore.Encoder.
func (e oneLineEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	entry.Message = printable.Text(entry.Message, say.MaxWord)
	return e.Encoder.EncodeEntry(entry, fields)
}
