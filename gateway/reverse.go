package gateway

type pendingAsk struct{}
