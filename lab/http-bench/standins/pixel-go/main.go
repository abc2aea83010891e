// A stand-in for a pixel server written with net/http and nothing else.
package main

import (
	"encoding/hex"
	"fmt"
	"log"
	"net"
	"net/http"
)

const gif = "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"

func main() {
	pixel, err := hex.DecodeString(gif)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/gif")
		w.Header().Set("Cache-Control", "public, max-age=31536000")
		w.Write(pixel)
	})
	log.Fatal(http.Serve(listener, nil))
}
