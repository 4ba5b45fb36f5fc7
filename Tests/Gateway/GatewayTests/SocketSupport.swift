import CLinux
import HTTPCore
import Testing

@testable import EventLoop

/// A server on this host's loopback that does what the test tells it, and nothing else.
final class ScriptedServer {
    let descriptor: Int32
    let endpoint: Endpoint

    /// - Parameters:
    ///   - address: what it is bound to; port 0 takes a free one.
    ///   - listens: false: the port is taken, and refuses.
    ///   - backlog: connections that the kernel keeps until they are accepted, and one more.
    init(_ address: String = "127.0.0.1:0", listens: Bool = true, backlog: Int32 = 64) throws {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_INET, type, 0)
        var wanted = KernelAddress(try #require(Endpoint(address)))
        let fd = descriptor
        try #require(wanted.withPointer { bind(fd, $0, $1.pointee) } == 0)
        if listens { try #require(listen(fd, backlog) == 0) }
        endpoint = try #require(Sockets.localEndpoint(fd))
    }

    deinit { Descriptors.close(descriptor) }

    var host: String { "\(endpoint.address)" }
    var port: UInt16 { endpoint.port }

    /// The next connection in the kernel's queue.
    func accept() -> Peer? {
        guard case .connection(let accepted, _) = Sockets.accept(descriptor) else { return nil }
        return Peer(accepted)
    }

    /// The next connection, which is on its way.
    func nextPeer(sourceLocation: SourceLocation = #_sourceLocation) throws -> Peer {
        var asked = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&asked, 1, 20_000)
        return try #require(accept(), sourceLocation: sourceLocation)
    }
}

/// The far end of a connection of the gateway's, in the test's hand.
final class Peer {
    enum End { case closed, reset }

    let descriptor: Int32
    /// What has been read so far, and how the gateway ended its direction.
    private(set) var text = ""
    private(set) var end: End?
    private var isOpen = true

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    /// Two ends of a connection over TCP: the first one for the gateway.
    static func pair() throws -> (near: Int32, far: Peer) {
        let server = try ScriptedServer()
        let near = try Sockets.connect(to: server.endpoint)
        return (near, try server.nextPeer())
    }

    /// Sends a text that the kernel's buffers have room for.
    func send(_ text: some StringProtocol) {
        var text = String(text)
        let flags = Int32(MSG_NOSIGNAL)
        let sent = text.withUTF8 { CLinux.send(descriptor, $0.baseAddress, $0.count, flags) }
        #expect(sent == text.utf8.count)
    }

    /// Sends what the kernel's buffers take of so many bytes.
    func fill(_ count: Int, with byte: UInt8 = UInt8(ascii: "x")) -> Int {
        let bytes = [UInt8](repeating: byte, count: count)
        return max(0, CLinux.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL)))
    }

    /// Reads what is there, at most `limit` bytes, and gives everything that was ever read.
    @discardableResult
    func read(atMost limit: Int = .max) -> String {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var left = limit
        while isOpen, end == nil, left > 0 {
            let result = bytes.withUnsafeMutableBytes {
                Transfers.read(descriptor, into: .init(rebasing: $0[..<min(left, $0.count)]))
            }
            switch result {
            case .bytes(let count):
                left -= count
                text += String(decoding: bytes[..<count], as: UTF8.self)
            case .wouldBlock: return text
            case .endOfStream: end = .closed
            case .failed: end = .reset
            }
        }
        return text
    }

    /// Forgets what was read.
    func forget() { text = "" }

    /// Whether the gateway has ended its direction, once all is read.
    var hasEnded: Bool {
        read()
        return end != nil
    }

    func finishSending() { Sockets.shutdownWrite(descriptor) }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Descriptors.close(descriptor)
    }

    func reset() {
        Sockets.resetOnClose(descriptor)
        close()
    }
}

/// How many descriptors of any process are connections, or attempts at one, to a port of this host:
/// what has been closed is no longer counted, whatever the kernel still has to do with it.
func openConnections(toPort port: UInt16) -> Int {
    guard let file = fopen("/proc/thread-self/net/tcp", "re") else { return -1 }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    var table = ""
    while true {
        let count = fread(&bytes, 1, bytes.count, file)
        guard count > 0 else { break }
        table += String(decoding: bytes[..<count], as: UTF8.self)
    }
    let hex = String(port, radix: 16, uppercase: true)
    let suffix = ":" + String(repeating: "0", count: 4 - hex.count) + hex
    // By their inodes: the table changes while it is read, and a line may come twice.
    var inodes: Set<Substring> = []
    for line in table.split(separator: "\n").dropFirst() {
        let fields = line.split(separator: " ")
        if fields.count > 9, fields[2].hasSuffix(suffix), fields[9] != "0" {
            inodes.insert(fields[9])
        }
    }
    return inodes.count
}
