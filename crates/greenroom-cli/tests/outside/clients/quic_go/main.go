// quic-go by HTTP/3: what Alt-Svc tells, long bodies both ways, many streams, and one that is
// cancelled.
//
// Usage: client URL ROOT [PATH]. Prints a line for each step; with a path, what it responds instead.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	hello       = "Hello, world!\n"
	bodyBytes   = 5_000_000
	longBytes   = 20_000_000
	beside      = 50
	blockMillis = 10_000
)

var (
	base  = os.Args[1]
	roots = x509.NewCertPool()
)

func main() {
	log.SetFlags(0)
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	roots.AppendCertsFromPEM(pem)
	connections := 0
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.Close()
	address := alternative()
	transport.Dial = func(
		ctx context.Context, _ string, tls *tls.Config, config *quic.Config,
	) (*quic.Conn, error) {
		connections++
		return quic.DialAddr(ctx, address, tls, config)
	}
	client := &http.Client{Transport: transport}
	if len(os.Args) > 3 {
		_, content := ask(client, "GET", os.Args[3], nil)
		fmt.Print(string(content))
		return
	}
	step("alternative")
	simple(client)
	long(client)
	cancelled(client)
	many(client)
	equal("connections", connections, 1)
}

// alternative returns the address that a response by TCP tells (RFC 7838, 3).
func alternative() string {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	response, _ := ask(&http.Client{Transport: transport}, "GET", "/hello", nil)
	told, isHttp3 := strings.CutPrefix(response.Header.Get("Alt-Svc"), "h3=\":")
	port, _, isQuoted := strings.Cut(told, "\"")
	equal("Alt-Svc", []bool{isHttp3, isQuoted}, []bool{true, true})
	origin, err := url.Parse(base)
	check(err)
	return net.JoinHostPort(origin.Hostname(), port)
}

func simple(client *http.Client) {
	response, content := ask(client, "GET", "/hello", nil)
	equal("protocol", response.Proto, "HTTP/3.0")
	equal("/hello", string(content), hello)
	response, content = ask(client, "HEAD", "/hello", nil)
	equal("length for HEAD", response.ContentLength, len(hello))
	equal("content for HEAD", len(content), 0)
	step("simple")
}

func long(client *http.Client) {
	sent := body()
	sum := sha256.Sum256(sent)
	// The latter does not tell its length.
	for _, body := range []io.Reader{bytes.NewReader(sent), io.MultiReader(bytes.NewReader(sent))} {
		_, content := ask(client, "POST", "/upload", body)
		var receipt struct {
			Bytes  int
			Sha256 string
		}
		check(json.Unmarshal(content, &receipt))
		equal("bytes", receipt.Bytes, len(sent))
		equal("sum", receipt.Sha256, hex.EncodeToString(sum[:]))
	}
	_, content := ask(client, "GET", fmt.Sprintf("/bytes/%d", longBytes), nil)
	equal("/bytes", len(content), longBytes)
	step("long")
}

// cancelled takes the beginning of responses, more often than the windows of their connection would
// hold if the server did not let go of them.
func cancelled(client *http.Client) {
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		path := fmt.Sprintf("%s/bytes/%d", base, longBytes)
		request, err := http.NewRequestWithContext(ctx, "GET", path, nil)
		check(err)
		response, err := client.Do(request)
		check(err)
		_, err = io.ReadFull(response.Body, make([]byte, 1_000))
		check(err)
		cancel()
		_, err = io.Copy(io.Discard, response.Body)
		equal("cancelled", err != nil, true)
		response.Body.Close()
	}
	ask(client, "GET", "/hello", nil)
	step("cancelled")
}

// many has streams served at once beside a handler that holds its thread.
func many(client *http.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		path := fmt.Sprintf("%s/block/%d", base, blockMillis)
		request, err := http.NewRequestWithContext(ctx, "GET", path, nil)
		check(err)
		_, err = client.Do(request)
		ended <- err
	}()
	var all sync.WaitGroup
	for number := range beside {
		all.Go(func() {
			_, content := ask(client, "GET", fmt.Sprintf("/bytes/%d", 1_000*number), nil)
			equal("/bytes", len(content), 1_000*number)
		})
	}
	all.Wait()
	equal("responses before the others", len(ended), 0)
	cancel()
	equal("cancelled", <-ended != nil, true)
	step("many")
}

func ask(client *http.Client, method, path string, body io.Reader) (*http.Response, []byte) {
	request, err := http.NewRequest(method, base+path, body)
	check(err)
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(err)
	equal(method+" "+path, response.StatusCode, 200)
	return response, content
}

// body repeats with a period that divides no buffer's size.
func body() []byte {
	data := make([]byte, bodyBytes)
	for index := range data {
		data[index] = byte(index % 251)
	}
	return data
}

func step(done string) {
	fmt.Println(done)
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
