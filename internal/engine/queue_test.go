package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A plain slice judges the chunks.
func TestQueueAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d depot
		var q, other queue
		var model, otherModel []any
		next := 0
		push := func(q *queue, model *[]any, most int) {
			for range rapid.IntRange(1, most).Draw(t, "n") {
				q.push(&d, next)
				*model = append(*model, next)
				next++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push":      func(*rapid.T) { push(&q, &model, 600) },
			"pushOther": func(*rapid.T) { push(&other, &otherModel, 10) },
			"pop": func(t *rapid.T) {
				for n := rapid.IntRange(1, 600).Draw(t, "n"); n > 0 && len(model) > 0; n-- {
					require.Equal(t, model[0], q.front())
					require.Equal(t, model[0], q.pop(&d))
					model = model[1:]
				}
			},
			"prepend": func(*rapid.T) {
				q.prepend(&d, &other)
				model, otherModel = append(otherModel, model...), nil
			},
			"swap": func(*rapid.T) {
				q, other = other, q
				model, otherModel = otherModel, model
			},
			"release": func(*rapid.T) {
				q.release(&d)
				if len(model) == 0 {
					require.Equal(t, queue{}, q)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), q.len())
				require.Equal(t, len(model) == 0, q.empty())
				require.Equal(t, q.head == nil, q.tail == nil)
				require.Equal(t, len(otherModel), other.len())
			},
		})
	})
}

func TestQueueForgetsWhatItGave(t *testing.T) {
	var d depot
	var q queue
	for i := range 300 {
		q.push(&d, i)
	}
	first := q.head
	for range 300 {
		q.pop(&d)
	}
	for _, c := range []*chunk{first, q.head} {
		for _, slot := range c.slots {
			require.Nil(t, slot)
		}
	}
}
