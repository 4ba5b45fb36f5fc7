// faulty-requests [OPTION]... PORTS...: makes requests with the client library to a server with
// faults; deploy/client_soak.py starts both. PORTS are those of one of the server's processes:
// `plain=PORT,tls=PORT,…`.
//
//   --anchors FILE    certificates of the server's authority, in PEM
//   --folder FOLDER   an empty one, for files
//   --requests N      how many (10000)
//   --rounds N        in how many rounds, after each of which nothing must be left (10)
//   --seed S          what happens follows from it (1)
//   --width N         so many at a time (96)
//   --only N          only the call of this number, in each round
//   --fault NAME      only calls with this fault
//
// It prints a line for each round, how the calls have ended for each fault, and a line that begins
// with `wrong:` for everything that must not be. The status is 1 if there is any, and 3 if a call
// does not end.
import Glibc
import PinfoldClient

var values: [String: String] = [:]
var ports: [String] = []
var words = CommandLine.arguments.dropFirst().makeIterator()
while let word = words.next() {
    if word.hasPrefix("--") { values[word] = words.next() ?? "" } else { ports.append(word) }
}
let known: Set = [
    "--anchors", "--folder", "--requests", "--rounds", "--seed", "--width", "--only", "--fault",
]
let servers = ports.compactMap { Ports($0) }
guard known.isSuperset(of: values.keys), !servers.isEmpty, servers.count == ports.count,
    let count = Int(values["--requests"] ?? "10000"), count > 0,
    let rounds = Int(values["--rounds"] ?? "10"), 1...count ~= rounds,
    let seed = UInt64(values["--seed"] ?? "1"),
    let width = Int(values["--width"] ?? "96"), width > 0,
    values["--fault"].map({ name in Fault.all.contains { $0.name == name } }) ?? true
else {
    print("usage: faulty-requests [OPTION]... PORTS...; see its source")
    exit(2)
}

let (anchorFile, folder) = (values["--anchors"] ?? "", values["--folder"] ?? ".")
let only = values["--only"].flatMap { Int($0) }
let fault = values["--fault"]

func soak() async throws -> Bool {
    let anchors = try CertificatePin.pins(in: contents(of: anchorFile))
    let around = Surroundings(
        servers: servers, anchors: anchors.compactMap(\.certificate),
        // Tasks of transports, of refreshed tokens and of runtimes that are closed come on top.
        ledger: Ledger(tasks: 3 * count + 100 * rounds + 10_000),
        pin: try CertificatePin("sha256/" + String(repeating: "A", count: 43) + "="))
    let soak = Soak(
        around: around, folder: try Folder(folder), seed: seed, width: width,
        fault: fault)
    try await soak.run(count, rounds: rounds, only: only)
    for line in soak.tally.lines { print("  \(line)") }
    print("ends: \(soak.tally.kinds.joined(separator: ", "))")
    if soak.tally.excused > 0 {
        print("\(soak.tally.excused) calls ended otherwise because the machine stood still")
    }
    let problems = soak.tally.problemCount
    print("\(soak.tally.total) calls, \(problems) problems")
    return problems == 0
}

Task.detached {
    do {
        exit(try await soak() ? 0 : 1)
    } catch {
        print("wrong: \(error)")
        exit(1)
    }
}
while true { pause() }
