// pinfold-requests [--on-loop] URL COUNT WIDTH [PEM]: so many GETs, so many at a time, over one
// session, which trusts the certificates of a file; --on-loop: by tasks on the thread of its loop.
// pinfold-requests --idle COUNT: the memory of so many sessions that do nothing.
import Glibc
import PinfoldClient
import Synchronization

let begun = Atomic(0)

func contents(of path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes[..<count])
}

func requests(_ url: String, _ count: Int, _ width: Int, _ trusted: String?) async throws {
    var configuration = SessionConfiguration()
    if let trusted {
        configuration.securityPolicy.trustsSystem = false
        configuration.securityPolicy.anchors = try CertificatePin.pins(in: contents(of: trusted))
            .compactMap(\.certificate)
    }
    configuration.maximumRequests = width
    configuration.maximumRequestsPerOrigin = width
    let session = try SessionManager(configuration: configuration)
    let request = try HTTPRequest(.get, url)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<width {
            group.addTask {
                while begun.add(1, ordering: .relaxed).newValue <= count {
                    let response = try await session.data(for: request)
                    precondition(response.head.status == .ok && response.content.count == 1024)
                }
            }
        }
        try await group.waitForAll()
    }
}

/// KiB of memory that the process has.
func residentKiB() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var (total, resident) = (0, 0)
    withUnsafeMutablePointer(to: &total) { total in
        withUnsafeMutablePointer(to: &resident) { resident in
            _ = withVaList([total, resident]) { vfscanf(file, "%ld %ld", $0) }
        }
    }
    return resident * 4
}

func idle(_ count: Int) throws {
    // What the first one loads, all have.
    var sessions = [try SessionManager()]
    usleep(300_000)
    let before = residentKiB()
    for _ in 0..<count { sessions.append(try SessionManager()) }
    usleep(300_000)
    print("\((residentKiB() - before) / count) KiB for each of \(sessions.count - 1) sessions")
}

var words = CommandLine.arguments
let isOnLoop = words.count > 1 && words[1] == "--on-loop"
if isOnLoop { words.remove(at: 1) }
if words.count == 3, words[1] == "--idle", let count = Int(words[2]), count > 0 {
    try idle(count)
    exit(0)
}
guard 4...5 ~= words.count, let count = Int(words[2]), let width = Int(words[3]) else {
    print("usage: \(words[0]) [--on-loop] URL COUNT WIDTH [PEM], or --idle COUNT")
    exit(2)
}
let arguments = words
Task.detached {
    do {
        let executor = isOnLoop ? try ClientRuntime.shared().taskExecutor : nil
        try await withTaskExecutorPreference(executor) {
            let pem = arguments.count > 4 ? arguments[4] : nil
            try await requests(arguments[1], count, width, pem)
        }
        exit(0)
    } catch {
        print("error: \(error)")
        exit(1)
    }
}
while true { pause() }
