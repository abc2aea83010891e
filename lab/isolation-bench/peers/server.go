// The application of this benchmark in Go, as its tutorial would have it: each handler in the goroutine of its
// connection, on as many threads as there are cores.
package main

import (
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"
)

// As in the other servers.
const (
	nMax      = 100_000
	millisMax = 60_000
)

func main() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", hello)
	mux.HandleFunc("GET /fib/{n}", fib)
	mux.HandleFunc("GET /page/{n}", fib)
	mux.HandleFunc("GET /block/{millis}", block)
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, mux))
}

func hello(response http.ResponseWriter, _ *http.Request) {
	answer(response, "Hello, world!\n")
}

func fib(response http.ResponseWriter, request *http.Request) {
	if n, ok := number(response, request, "n", nMax); ok {
		answer(response, fibonacci(n).String()+"\n")
	}
}

func block(response http.ResponseWriter, request *http.Request) {
	if millis, ok := number(response, request, "millis", millisMax); ok {
		time.Sleep(time.Duration(millis) * time.Millisecond)
		answer(response, "done\n")
	}
}

func number(response http.ResponseWriter, request *http.Request, name string, most int) (int, bool) {
	n, err := strconv.Atoi(request.PathValue(name))
	if err != nil || n < 0 || n > most {
		http.Error(response, "not such a number", http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

func answer(response http.ResponseWriter, text string) {
	response.Header().Set("Content-Type", "text/plain")
	response.Header().Set("Content-Length", strconv.Itoa(len(text)))
	// A client that has gone needs no answer.
	_, _ = response.Write([]byte(text))
}

func fibonacci(n int) *big.Int {
	current, next := big.NewInt(0), big.NewInt(1)
	for range n {
		current.Add(current, next)
		current, next = next, current
	}
	return current
}
