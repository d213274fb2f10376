package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretFromAFileIsReadEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	v := Value{File: file}
	long := strings.Repeat("x", MaxSecret)
	for _, c := range []struct{ in, want string }{
		{"one", "one"}, {"one\n", "one"}, {"one\r\n", "one"}, {"one\n\n", "one\n"}, {" a b \n", " a b "}, {long + "\r\n", long},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.in), 0o600))
		got, err := v.read("headers.X")
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func TestSecretThatCannotBeHad(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Setenv("EMPTY", "")
	t.Setenv("LONG", strings.Repeat("s3cret", 3000))
	for name, v := range map[string]Value{
		"no such variable": {Env: "NO_SUCH_VARIABLE"},
		"empty variable":   {Env: "EMPTY"},
		"long variable":    {Env: "LONG"},
		"no such file":     {File: filepath.Join(dir, "missing")},
		"a directory":      {File: dir},
		"a device":         {File: os.DevNull},
		"an empty file":    {File: file("empty", "\n")},
		"a long file":      {File: file("long", strings.Repeat("s3cret", 3000))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v.read("headers.Authorization")
			require.ErrorIs(t, err, ErrSecret)
			require.ErrorContains(t, err, "headers.Authorization")
			require.ErrorContains(t, err, v.Env+v.File)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestValueShowsWhereASecretIsNotWhatItIs(t *testing.T) {
	t.Setenv("TOKEN", "s3cret")
	require.Equal(t, "{env: TOKEN} {env: TOKEN} {env: TOKEN}", fmt.Sprintf("%v %#v %s", Value{Env: "TOKEN"}, Value{Env: "TOKEN"}, Value{Env: "TOKEN"}))
	require.Equal(t, "{file: /run/token}", Value{File: "/run/token"}.String())
	require.Equal(t, "text", Value{Literal: "text"}.String())
}
