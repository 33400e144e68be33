package meter

// MaxAnswer is the bound of one answer, for the tests that fill it.
const MaxAnswer = maxAnswer

// Weight is what a text counts as of MaxAnswer.
var Weight = weight
