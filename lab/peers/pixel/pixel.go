// The pixel server in Go, as the text has it: net/http with one handler.
package main

import (
	"encoding/hex"
	"log"
	"net/http"
	"os"
)

func main() {
	gif, err := hex.DecodeString("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Cache-Control", "public, max-age=31536000")
		response.Header().Set("Content-Type", "image/gif")
		_, _ = response.Write(gif)
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
