package sqlast

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill gives every field of a value something of its own, so that a field that
// the codec forgets makes the test fail.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 3 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(k, n)
			fill(e, n)
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d é", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n)*1000 - 20_000)
	default:
		panic("a kind that the test does not know: " + v.Kind().String())
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	t.Parallel()
	var full Analysis
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	for name, a := range map[string]Analysis{
		"full": full, "zero": {},
		"empty lists": {Fields: []Field{}, Definition: Definition{Params: map[string]string{}, Key: []string{}}, Schema: SchemaSnapshot{{Columns: []Column{}}}},
	} {
		got, err := DecodeAnalysis(AppendAnalysis(nil, &a))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(a, *got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestBinaryBroken cuts and bends an encoding: an error or another analysis,
// never a panic.
func TestBinaryBroken(t *testing.T) {
	t.Parallel()
	var full Analysis
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	whole := AppendAnalysis(nil, &full)
	for i := range whole {
		if _, err := DecodeAnalysis(whole[:i]); err == nil {
			t.Fatalf("cut at %d: no error", i)
		}
		bent := append([]byte{}, whole...)
		bent[i] ^= 0xff
		if a, err := DecodeAnalysis(bent); err == nil && a == nil {
			t.Fatalf("bent at %d: neither analysis nor error", i)
		}
	}
}

func TestBinaryTellsApart(t *testing.T) {
	t.Parallel()
	a := string(AppendDefinition(nil, Definition{SQL: "a", File: "bc"}))
	b := string(AppendDefinition(nil, Definition{SQL: "ab", File: "c"}))
	if a == b {
		t.Error("two definitions have one encoding")
	}
	x := string(AppendTable(nil, Table{Name: "t", Columns: []Column{{Name: "a"}}}))
	y := string(AppendTable(nil, Table{Name: "t", Columns: []Column{{Name: "a", Type: ""}, {}}}))
	if x == y {
		t.Error("two tables have one encoding")
	}
}
