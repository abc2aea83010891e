// net/http as its documentation has it: on SIGTERM `Server.Shutdown`, whose end is waited for.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const deadline = 30 * time.Second

func main() {
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp4", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", upload)
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() {
		<-told.Done()
		context, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		ended <- server.Shutdown(context)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}

func upload(response http.ResponseWriter, request *http.Request) {
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return
	}
	response.Header().Set("Content-Type", "text/plain")
	// A client that has gone needs no answer.
	_, _ = io.WriteString(response, "Hello, world!")
}
