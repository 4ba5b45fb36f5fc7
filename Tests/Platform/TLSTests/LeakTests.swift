import CLinux
import COpenSSL
import PinfoldTLS
import Testing
import Trust

@Suite("Memory", .serialized)
struct LeakTests {
    /// The process's resident memory in bytes.
    static func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
        let text = String(
            decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Makes this many connections one after the other: in turn trusted, resumed, refused by pin,
    /// refused by name, and abandoned in the middle of the handshake.
    static func connect(_ count: Int, _ contexts: [TLSClientContext], _ port: UInt16) throws {
        for index in 0..<count {
            let kind = index % 5
            let host = kind == 3 ? "other.test" : "service.test"
            let context = contexts[kind == 2 ? 1 : 0]
            let client = try TestClient(context, port: port, host: host)
            if kind == 4 {
                _ = client.connection.handshake()
                continue
            }
            let error = client.handshake()
            #expect((error == nil) == (kind < 2), "kind \(kind): \(String(describing: error))")
            if error == nil { #expect(client.exchange() == "hello") }
        }
    }

    @Test func `a thousand handshakes of every kind leave nothing behind`() throws {
        let warmUp = 200
        let count = 1_000
        // Other tests run at the same time and their memory belongs to the process, too: a leak
        // shows in every attempt, their growth does not.
        let attempts = 40
        let server = TestServer(
            [PKI.leaf, PKI.intermediate], connections: warmUp + attempts * count)
        let sessions = TLSSessionCache()
        let certificatePin = pinset(.certificate, PKI.root.pins(.fingerprint), name: "a")
        let keyPin = pinset(.publicKey, PKI.leaf.pins(.key), name: "b")
        let wrongPin = pinset(.publicKey, PKI.rogueLeaf.pins(.key), name: "c")
        let contexts = [
            try TLSClientContext.make([certificatePin, keyPin], sessions: sessions),
            try TLSClientContext.make([certificatePin, wrongPin], sessions: sessions),
        ]
        try Self.connect(warmUp, contexts, server.port)
        // A leak of one connection's state would be a few KiB each time, several MiB in total.
        let allowed = 1 << 20
        var growth = Int.max
        for _ in 0..<attempts where growth > allowed {
            let before = Self.residentBytes()
            try Self.connect(count, contexts, server.port)
            growth = min(growth, Self.residentBytes() - before)
        }
        #expect(growth <= allowed)
        #expect(sessions.count <= sessions.limits.sessionsPerServer)
        server.stop()
    }

    @Test func `a thousand contexts leave nothing behind`() throws {
        let certificatePin = pinset(
            .certificate, PKI.root.pins(.certificateFile), anchors: [PKI.rogueRoot], name: "a")
        let roots = PKI.roots(PKI.root)
        func make(_ count: Int) throws {
            for _ in 0..<count {
                let context = try TLSClientContext.make(
                    [certificatePin], roots: roots, sessions: TLSSessionCache())
                let connection = try TLSClientConnection(
                    context: context, fileDescriptor: -1, host: "a", port: 1, now: 0)
                #expect(connection.facts == nil)
            }
        }
        try make(50)
        var growth = Int.max
        for _ in 0..<12 where growth > 4 << 20 {
            let before = Self.residentBytes()
            try make(1_000)
            growth = min(growth, Self.residentBytes() - before)
        }
        // A context is some 50 KiB: if all leaked, that would be 50 MiB.
        #expect(growth <= 4 << 20)
    }
}
