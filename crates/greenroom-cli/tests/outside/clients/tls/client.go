// Go's net/http over TLS: HTTP/1.1 and HTTP/2, keep-alive, long bodies both ways, resumption, and
// client certificates.
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
	"os"
	"strings"
	"time"
)

const (
	hello     = "Hello, world!\n"
	bodyBytes = 5_000_000
	longBytes = 20_000_000
)

var (
	base        = os.Args[1]
	roots       = x509.NewCertPool()
	certificate tls.Certificate
)

func main() {
	log.SetFlags(0)
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	roots.AppendCertsFromPEM(pem)
	certificate, err = tls.LoadX509KeyPair(os.Args[3], os.Args[4])
	check(err)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
			visit(version, protocol)
		}
	}
}

// visit does all of it on one connection, and again on one that is resumed.
func visit(version uint16, protocol string) {
	sessions := tls.NewLRUClientSessionCache(1)
	for turn := 0; turn < 2; turn++ {
		connections := 0
		client, transport := client(version, protocol, sessions, &connections)
		response, content := ask(client, "GET", "/hello", nil)
		equal("protocol", response.Proto, protocol)
		equal("version", response.TLS.Version, version)
		equal("resumed", response.TLS.DidResume, turn > 0)
		equal("/hello", string(content), hello)
		sent := body()
		_, content = ask(client, "POST", "/upload", bytes.NewReader(sent))
		assertReceipt(sent, content)
		_, content = ask(client, "POST", "/upload", io.MultiReader(bytes.NewReader(sent)))
		assertReceipt(sent, content)
		_, content = ask(client, "GET", fmt.Sprintf("/bytes/%d", longBytes), nil)
		equal("/bytes", len(content), longBytes)
		equal("connections", connections, 1)
		transport.CloseIdleConnections()
	}
}

func client(
	version uint16, protocol string, sessions tls.ClientSessionCache, connections *int,
) (*http.Client, *http.Transport) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		*connections++
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	transport := &http.Transport{
		DialContext:       dial,
		ForceAttemptHTTP2: protocol == "HTTP/2.0",
		TLSClientConfig: &tls.Config{
			RootCAs:            roots,
			Certificates:       []tls.Certificate{certificate},
			ClientSessionCache: sessions,
			MinVersion:         version,
			MaxVersion:         version,
		},
	}
	return &http.Client{Timeout: time.Minute, Transport: transport}, transport
}

func ask(client *http.Client, method, path string, body io.Reader) (*http.Response, []byte) {
	request, err := http.NewRequest(method, base+path, body)
	check(err)
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(err)
	equal(strings.Join([]string{method, path}, " "), response.StatusCode, 200)
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

func assertReceipt(sent, content []byte) {
	var receipt struct {
		Bytes  int
		Sha256 string
	}
	check(json.Unmarshal(content, &receipt))
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
