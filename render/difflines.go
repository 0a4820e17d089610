package render

import "strings"

// change is one line of a diff: ' ' stays, '-' goes, '+' comes.
type change struct {
	sign byte
	line string
}

// maxTable bounds the work on two long texts with little in common.
const maxTable = 1 << 22

// diffLines shows what stays, goes and comes. Nothing is left out, so that both sides can be read off it.
func diffLines(a, b []string) []change {
	var out, tail []change
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		out, a, b = append(out, change{' ', a[0]}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail, a, b = append(tail, change{' ', a[len(a)-1]}), a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) <= maxTable {
		// length[i][j] of the longest common subsequence of a[i:] and b[j:]
		length := make([][]int32, len(a)+1)
		for i := range length {
			length[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					length[i][j] = length[i+1][j+1] + 1
				} else {
					length[i][j] = max(length[i+1][j], length[i][j+1])
				}
			}
		}
		i, j := 0, 0
		for i < len(a) && j < len(b) {
			switch {
			case a[i] == b[j]:
				out = append(out, change{' ', a[i]})
				i, j = i+1, j+1
			case length[i+1][j] >= length[i][j+1]:
				out = append(out, change{'-', a[i]})
				i++
			default:
				out = append(out, change{'+', b[j]})
				j++
			}
		}
		a, b = a[i:], b[j:]
	}
	for _, l := range a {
		out = append(out, change{'-', l})
	}
	for _, l := range b {
		out = append(out, change{'+', l})
	}
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

// LineDiff shows two texts as one, each line with a sign before it: blank stays, - goes, + comes.
func LineDiff(before, after string) string {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	}
	var b strings.Builder
	for _, c := range diffLines(split(before), split(after)) {
		b.WriteByte(c.sign)
		b.WriteByte(' ')
		b.WriteString(Line(strings.ReplaceAll(c.line, "\t", "    ")))
		b.WriteByte('\n')
	}
	return b.String()
}
