package supervisor

// Remembered returns how many actors a history is kept of.
func (s *Strategy) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.histories)
}
