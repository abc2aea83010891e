// The isolation experiment's application in Go: each handler in the goroutine of its connection.
package main

import (
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { answer(w, "Hello, world!\n") })
	mux.HandleFunc("GET /fib/{n}", fib)
	mux.HandleFunc("GET /page/{n}", fib)
	mux.HandleFunc("GET /block/{n}", block)
	mux.HandleFunc("POST /take", take)
	mux.HandleFunc("GET /give", give)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: os.Args[1], Handler: mux, Protocols: protocols}
	log.Fatal(server.ListenAndServe())
}

func fib(w http.ResponseWriter, r *http.Request) {
	n, ok := number(w, r, 100_000)
	if !ok {
		return
	}
	current, next := big.NewInt(0), big.NewInt(1)
	for range n {
		current.Add(current, next)
		current, next = next, current
	}
	answer(w, current.String()+"\n")
}

func block(w http.ResponseWriter, r *http.Request) {
	if millis, ok := number(w, r, 60_000); ok {
		time.Sleep(time.Duration(millis) * time.Millisecond)
		answer(w, "done\n")
	}
}

func take(w http.ResponseWriter, r *http.Request) {
	bytes, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	answer(w, strconv.FormatInt(bytes, 10)+"\n")
}

func give(w http.ResponseWriter, _ *http.Request) {
	part := make([]byte, 64*1024)
	for range 16 * 1024 {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

func number(w http.ResponseWriter, r *http.Request, most int) (int, bool) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n > most {
		http.Error(w, "not such a number", http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write([]byte(text))
}
