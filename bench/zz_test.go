package bench
import ("testing";"os";"strconv")
func TestZZ(t *testing.T){ n,_:=strconv.Atoi(os.Getenv("N")); g,err:=Generate(os.Getenv("OUT"),n); t.Log(g,err) }
