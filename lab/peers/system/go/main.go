// Both tests with net/http: `main ADDRESS URL`, the page to load.
package main

import (
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	nMax = 100_000
	// The transport's own choice is 2, and it closes what is beyond.
	connectionsMax = 2048
)

var client = &http.Client{
	Timeout: 10 * time.Second,
	Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		MaxIdleConns:        connectionsMax,
		MaxIdleConnsPerHost: connectionsMax,
	},
}

func main() {
	page := os.Args[2]
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fib/{n}", fib)
	mux.HandleFunc("GET /proxy", func(response http.ResponseWriter, request *http.Request) {
		proxy(response, request, page)
	})
	log.Fatal(http.ListenAndServe(os.Args[1], mux))
}

func fib(response http.ResponseWriter, request *http.Request) {
	n, err := strconv.Atoi(request.PathValue("n"))
	if err != nil || n < 0 || n > nMax {
		http.Error(response, "not such a number", http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "text/plain")
	io.WriteString(response, fibonacci(n).String()+"\n")
}

func proxy(response http.ResponseWriter, request *http.Request, page string) {
	outgoing, err := http.NewRequestWithContext(request.Context(), http.MethodGet, page, nil)
	if err != nil {
		http.Error(response, "not such a page", http.StatusInternalServerError)
		return
	}
	incoming, err := client.Do(outgoing)
	if err != nil {
		http.Error(response, "the third party has failed", http.StatusBadGateway)
		return
	}
	defer incoming.Body.Close()
	response.Header().Set("Content-Type", incoming.Header.Get("Content-Type"))
	response.Header().Set("Content-Length", incoming.Header.Get("Content-Length"))
	response.WriteHeader(incoming.StatusCode)
	// A client that has gone needs no page.
	_, _ = io.Copy(response, incoming.Body)
}

func fibonacci(n int) *big.Int {
	current, next := big.NewInt(0), big.NewInt(1)
	for range n {
		current.Add(current, next)
		current, next = next, current
	}
	return current
}
