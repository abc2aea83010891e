// Go's net/http: keep-alive, uploads with a length and in chunks, a body that waits for 100, refused
// bodies.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"
)

const (
	hello         = "Hello, world!\n"
	bodyBytesMax  = 2 * 1024 * 1024
	downloadBytes = 1_000_000
)

type answer struct {
	status  int
	length  int64
	content []byte
}

var (
	base        = os.Args[1]
	connections int
	client      = http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{ExpectContinueTimeout: 10 * time.Second},
	}
)

func main() {
	log.SetFlags(0)
	keepAlive()
	refused()
}

func keepAlive() {
	assertHello(ask("GET", "/hello", nil, nil))
	head := ask("HEAD", "/hello", nil, nil)
	equal("HEAD", []any{head.status, head.length, len(head.content)}, []any{200, int64(len(hello)), 0})
	download := ask("GET", fmt.Sprintf("/bytes/%d", downloadBytes), nil, nil)
	equal("/bytes", []any{download.status, len(download.content)}, []any{200, downloadBytes})
	equal("/nothing", ask("GET", "/nothing", nil, nil).status, 404)
	for _, size := range []int{0, 1, 65536, 1024 * 1024, bodyBytesMax} {
		sent := body(size)
		assertReceipt(sent, ask("POST", "/upload", bytes.NewReader(sent), nil))
	}
	sent := body(1024 * 1024)
	assertReceipt(sent, ask("POST", "/upload", unsized(sent), nil))
	expect := http.Header{"Expect": {"100-continue"}}
	assertReceipt(sent, ask("POST", "/upload", bytes.NewReader(sent), expect))
	equal("connections", connections, 1)
}

func refused() {
	sent := body(bodyBytesMax + 1)
	equal("upload over the limit", ask("POST", "/upload", bytes.NewReader(sent), nil).status, 413)
	equal("upload in chunks over the limit", ask("POST", "/upload", unsized(sent), nil).status, 413)
	expect := http.Header{"Expect": {"100-continue"}}
	equal("upload that waits for 100", ask("POST", "/upload", bytes.NewReader(sent), expect).status, 413)
	assertHello(ask("GET", "/hello", nil, nil))
}

func ask(method, path string, body io.Reader, header http.Header) answer {
	request, err := http.NewRequest(method, base+path, body)
	check(err)
	for name, values := range header {
		request.Header[name] = values
	}
	trace := httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			connections++
		}
	}}
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &trace))
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(err)
	return answer{response.StatusCode, response.ContentLength, content}
}

// unsized hides the length, so that the body goes in chunks.
func unsized(data []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(data))
}

// body repeats with a period that divides no buffer's size.
func body(size int) []byte {
	data := make([]byte, size)
	for index := range data {
		data[index] = byte(index % 251)
	}
	return data
}

func assertHello(a answer) {
	equal("/hello", []any{a.status, string(a.content)}, []any{200, hello})
}

func assertReceipt(sent []byte, a answer) {
	equal("upload: status", a.status, 200)
	var receipt struct {
		Bytes  int
		Sha256 string
	}
	check(json.Unmarshal(a.content, &receipt))
	sum := sha256.Sum256(sent)
	equal("upload", []any{receipt.Bytes, receipt.Sha256}, []any{len(sent), hex.EncodeToString(sum[:])})
}

func equal(what string, found, wanted any) {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		log.Fatalf("%s: %v, not %v", what, found, wanted)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
