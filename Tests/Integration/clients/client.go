// `client BASE FILE STEP...`: what `support/programs.py` describes, with net/http. Proxy and
// authority come from the environment.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	base, file, steps := os.Args[1], os.Args[2], os.Args[3:]
	proof := ""
	if token := os.Getenv("PROXY_TOKEN"); token != "" {
		proof = "Bearer " + token
		transport := http.DefaultTransport.(*http.Transport)
		transport.ProxyConnectHeader = http.Header{"Proxy-Authorization": {proof}}
	}
	if file := os.Getenv("PROXY_CERTIFICATE"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			log.Fatal(err)
		}
		transport := http.DefaultTransport.(*http.Transport)
		transport.TLSClientConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range steps {
		method, path, _ := strings.Cut(step, ":")
		var body io.Reader
		if method == "PUT" {
			body = bytes.NewReader(data)
		}
		request, err := http.NewRequest(method, base+path, body)
		if err != nil {
			log.Fatal(err)
		}
		if proof != "" && request.URL.Scheme == "http" {
			request.Header.Set("Proxy-Authorization", proof)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Printf("%d %d %x\n", answer.StatusCode, len(content), sha256.Sum256(content))
	}
}
