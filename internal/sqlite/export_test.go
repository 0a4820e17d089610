package sqlite

// Queued is the number of calls that wait for the writer.
func (db *DB) Queued() int {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return len(db.writer.queue)
}
