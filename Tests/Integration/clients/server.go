// `server TLS-PORT CLEAR-PORT CERTIFICATE KEY`: an origin of net/http, with HTTP/2 over TLS, that
// answers as `support/http2servers.py` describes.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch what {
	case "body":
		count, _ := strconv.Atoi(rest)
		w.Header().Set("Content-Length", rest)
		for line := 0; count > 0; line++ {
			text := fmt.Sprintf("%07d\n", line%1024)
			if count < len(text) {
				text = text[:count]
			}
			count -= len(text)
			_, _ = io.WriteString(w, text)
		}
	case "digest":
		sum := sha256.New()
		_, err := io.Copy(sum, r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%x", sum.Sum(nil))
	case "trailers":
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "content")
		// Otherwise it is sent with its length, and to HTTP/1.1 without trailers.
		w.(http.Flusher).Flush()
		w.Header().Set("X-Sum", "42")
	case "etag":
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Cache-Control", "no-cache")
		if r.Header.Get("If-None-Match") == `"one"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "validated")
	default:
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
	}
}

func main() {
	secure, clear, certificate, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	http.HandleFunc("/", answer)
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:"+clear, nil)) }()
	log.Fatal(http.ListenAndServeTLS("127.0.0.1:"+secure, certificate, key, nil))
}
