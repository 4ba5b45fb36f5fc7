import CLinux
import CacheStore
import CacheTestSupport
import Clocks

// A store by itself, for `deploy/bench/store`: it prints what was measured as lines of JSON.
//
//     StoreBench fill FOLDER COUNT BYTES    stores COUNT responses with bodies of BYTES bytes, and
//                                           then waits to be killed
//     StoreBench open FOLDER COUNT BYTES    opens what was filled, and reads some of it
//     StoreBench purge FOLDER COUNT BYTES   stores COUNT responses with tags, purges some of them
//                                           by tag, prefix and host, and looks others up meanwhile

/// Kibibytes of memory that the process occupies.
func resident() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var (size, pages) = (0, 0)
    withUnsafeMutablePointer(to: &size) { size in
        withUnsafeMutablePointer(to: &pages) { pages in
            _ = withVaList([size, pages]) { vfscanf(file, "%ld %ld", $0) }
        }
    }
    return pages * 4
}

func show(_ values: KeyValuePairs<String, String>) {
    let fields = values.map { "\"\($0)\": \($1)" }.joined(separator: ", ")
    print("{\(fields)}")
    fflush(nil)
}

func seconds(since start: Int64) -> Double {
    Double(Clock.monotonicNanoseconds() - start) / 1_000_000_000
}

func key(_ number: Int) -> String { "http://bench.example/object/\(number)" }

let began = Clock.monotonicNanoseconds()
let arguments = CommandLine.arguments
guard arguments.count == 5, let count = Int(arguments[3]), let bytes = Int(arguments[4]) else {
    fatalError("StoreBench fill|open|purge FOLDER COUNT BYTES")
}
var options = CacheStoreOptions()
options.folder = arguments[2]
options.memoryBytes = arguments[1] == "purge" ? 256 << 20 : 1 << 20
options.diskBytes = 1 << 40
options.diskEntries = 50_000_000
let empty = resident()
let store = CacheStore(options: options)
guard store.waitUntilDiskSettled(milliseconds: 600_000) == .ready else {
    fatalError("the disk is not ready")
}

/// Loads and checks a response.
func read(_ number: Int) {
    let found = store.loaded(key(number))
    guard let response = found.first, let content = store.bytes(response),
        content.count == bytes
    else { fatalError("\(key(number)) is not there") }
}

switch arguments[1] {
case "fill":
    let content = body(bytes)
    let start = Clock.monotonicNanoseconds()
    let before = resident()
    for number in 0..<count {
        store.put(key(number), content)
        // What the writer cannot keep up with would be left out.
        if number % 64 == 0 {
            while store.statistics().queueBytes > options.queueBytes / 4 { usleep(200) }
        }
    }
    store.flushNow()
    let statistics = store.statistics()
    show([
        "entries": "\(statistics.diskEntries)", "accounted": "\(statistics.diskBytes)",
        "seconds": "\(seconds(since: start))", "residentKiB": "\(resident() - before)",
    ])
    while true { sleep(1000) }
case "open":
    // Which is there is known as soon as the index is.
    read(count / 2)
    let ready = seconds(since: began)
    let statistics = store.statistics()
    let after = resident()
    let start = Clock.monotonicNanoseconds()
    let loads = min(count, 20_000)
    var number = 1
    for _ in 0..<loads {
        number = (number &* 48_271) % 2_147_483_647
        read(number % count)
    }
    show([
        "entries": "\(statistics.diskEntries)", "accounted": "\(statistics.diskBytes)",
        "ready": "\(ready)", "readyAt": "\(began + Int64(ready * 1_000_000_000))",
        "residentKiB": "\(after - empty)", "loads": "\(loads)",
        "loadSeconds": "\(seconds(since: start))",
    ])
case "purge": purge(store, count, bytes)
default: fatalError("fill, open or purge")
}
