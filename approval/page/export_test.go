package page

// RouteInfo is a row of the table, for tests that range over it.
type RouteInfo struct {
	Pattern string
	Decides bool
}

// Routes lists the table.
func Routes() (out []RouteInfo) {
	for _, r := range table {
		out = append(out, RouteInfo{r.method + " " + r.pattern, r.decides})
	}
	return out
}
