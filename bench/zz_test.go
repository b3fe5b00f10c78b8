package bench
import ("testing";"os";"strconv";"database/sql"
_ "github.com/duckdb/duckdb-go/v2")
func TestZZ(t *testing.T){ n,_:=strconv.Atoi(os.Getenv("N")); g,err:=Generate(os.Getenv("OUT"),n); t.Log(g.Leaf,err)
db,err:=sql.Open("duckdb",os.Getenv("OUT")+"/generated.duckdb"); if err!=nil{t.Fatal(err)}
if _,err:=db.Exec(g.Sources);err!=nil{t.Fatal(err)}; db.Close() }
