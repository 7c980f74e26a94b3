// Reads an instance's log as a monitor does, with the Go project's own packages for signed notes and tiled logs and none of our code:
//
//	monitor URL KEY [OLDER CHECKPOINT]
//
// KEY is the log's key as a line `name+id+base64`. It computes the root anew from all entries, compares every tile with them, and
// verifies that an older checkpoint, in a file, is how the log began.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

func main() {
	log.SetFlags(0)
	base, key := os.Args[1]+"/.well-known/holdfast", os.Args[2]
	tree := opened(string(get(base+"/checkpoint")), key)

	// All entries, each after its length in two bytes.
	var hashes []tlog.Hash
	store := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for at, index := range indexes {
			found[at] = hashes[index]
		}
		return found, nil
	})
	for first := int64(0); first < tree.N; first += 1 << height {
		bundle := get(base + pathOf("entries", first>>height, min(tree.N-first, 1<<height)))
		for leaf := first; len(bundle) > 0; leaf++ {
			length := int(binary.BigEndian.Uint16(bundle))
			added, err := tlog.StoredHashes(leaf, bundle[2:2+length], store)
			check(err)
			hashes, bundle = append(hashes, added...), bundle[2+length:]
		}
	}
	root, err := tlog.TreeHash(tree.N, store)
	check(err)
	if root != tree.Hash {
		log.Fatalf("the entries have the root %v, and %v was signed", root, tree.Hash)
	}

	// The same hashes from the tiles, each verified on its way to the root.
	tiles := tlog.TileHashReader(tree, &served{base})
	for leaf := int64(0); leaf < tree.N; leaf++ {
		read, err := tiles.ReadHashes([]int64{tlog.StoredHashIndex(0, leaf)})
		check(err)
		if read[0] != hashes[tlog.StoredHashIndex(0, leaf)] {
			log.Fatalf("the tiles have another leaf %d", leaf)
		}
	}
	if len(os.Args) > 3 {
		text, err := os.ReadFile(os.Args[3])
		check(err)
		older := opened(string(text), key)
		proof, err := tlog.ProveTree(tree.N, older.N, tiles)
		check(err)
		check(tlog.CheckTree(proof, tree.N, tree.Hash, older.N, older.Hash))
	}
	fmt.Println(tree.N, "entries agree")
}

// opened is the tree of a checkpoint that the key has signed.
func opened(text, key string) tlog.Tree {
	verifier, err := note.NewVerifier(key)
	check(err)
	read, err := note.Open([]byte(text), note.VerifierList(verifier))
	check(err)
	lines := strings.Split(read.Text, "\n")
	if lines[0] != verifier.Name() {
		log.Fatalf("a checkpoint of %s", lines[0])
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	check(err)
	return tlog.Tree{N: size, Hash: tlog.Hash(*(*[32]byte)(root))}
}

type served struct{ base string }

func (s *served) Height() int                     { return height }
func (s *served) SaveTiles([]tlog.Tile, [][]byte) {}
func (s *served) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var read [][]byte
	for _, tile := range tiles {
		read = append(read, get(s.base+pathOf(strconv.Itoa(tile.L), tile.N, int64(tile.W))))
	}
	return read, nil
}

// pathOf names a tile as tlog-tiles does: like the Go project's tiles, without their height.
func pathOf(level string, index, width int64) string {
	tile := tlog.Tile{H: height, L: 0, N: index, W: int(width)}
	return "/tile/" + level + strings.TrimPrefix(tile.Path(), "tile/8/0")
}

func get(url string) []byte {
	response, err := http.Get(url)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode != 200 {
		log.Fatalf("%s: %s", url, response.Status)
	}
	return body
}

func min(one, other int64) int64 {
	if one < other {
		return one
	}
	return other
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
