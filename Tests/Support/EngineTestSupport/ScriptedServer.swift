import CLinux
import EventLoop
import Foundation
import HTTPCore
import Testing

/// A server on the loopback interface that does only what the test lets it do.
package final class ScriptedServer {
    package let descriptor: Int32
    package let endpoint: Endpoint

    /// - Parameters:
    ///   - address: the IPv4 address to bind to; port 0 takes a free port.
    ///   - listens: if false, the port is taken but refuses connections.
    ///   - backlog: how many connections the kernel keeps until they are accepted, minus one.
    package init(
        _ address: String = "127.0.0.1:0", listens: Bool = true, backlog: Int32 = 64
    ) throws {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_INET, type, 0)
        let wanted = try #require(Endpoint(address))
        var inet = sockaddr_in()
        inet.sin_family = sa_family_t(AF_INET)
        inet.sin_port = wanted.port.bigEndian
        try #require(inet_pton(AF_INET, "\(wanted.address)", &inet.sin_addr) == 1)
        let fd = descriptor
        let isBound = withUnsafePointer(to: &inet) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(isBound)
        if listens { try #require(listen(fd, backlog) == 0) }
        endpoint = try #require(Sockets.localEndpoint(fd))
    }

    deinit { Descriptors.close(descriptor) }

    package var host: String { "\(endpoint.address)" }
    package var port: UInt16 { endpoint.port }

    /// The next connection in the kernel's queue.
    package func accept() -> Peer? {
        guard case .connection(let accepted, _) = Sockets.accept(descriptor) else { return nil }
        return Peer(accepted)
    }

    /// Waits for the next connection.
    package func nextPeer(sourceLocation: SourceLocation = #_sourceLocation) throws -> Peer {
        var asked = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&asked, 1, 20_000)
        return try #require(accept(), sourceLocation: sourceLocation)
    }
}

/// The far end of a connection of the gateway, controlled by the test.
package final class Peer {
    package enum End: Sendable { case closed, reset }

    package let descriptor: Int32
    /// Everything read so far.
    package private(set) var text = ""
    /// How the gateway ended its direction, or `nil` if it has not.
    package private(set) var end: End?
    private var isOpen = true

    package init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    /// The two ends of a TCP connection; the first is for the gateway.
    package static func pair() throws -> (near: Int32, far: Peer) {
        let server = try ScriptedServer()
        let near = try Sockets.connect(to: server.endpoint)
        return (near, try server.nextPeer())
    }

    /// Sends a text that the kernel's buffers have room for.
    package func send(_ text: some StringProtocol) {
        var text = String(text)
        let flags = Int32(MSG_NOSIGNAL)
        let sent = text.withUTF8 { CLinux.send(descriptor, $0.baseAddress, $0.count, flags) }
        #expect(sent == text.utf8.count)
    }

    /// Sends up to `count` bytes, as many as the kernel's buffers accept.
    package func fill(_ count: Int, with byte: UInt8 = UInt8(ascii: "x")) -> Int {
        let bytes = [UInt8](repeating: byte, count: count)
        return max(0, CLinux.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL)))
    }

    /// Reads what has arrived, at most `limit` bytes, and returns everything read so far.
    @discardableResult
    package func read(atMost limit: Int = .max) -> String {
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
    package func forget() { text = "" }

    /// Whether the gateway has ended its direction, once all is read.
    package var hasEnded: Bool {
        read()
        return end != nil
    }

    package func finishSending() { Sockets.shutdownWrite(descriptor) }

    package func close() {
        guard isOpen else { return }
        isOpen = false
        Descriptors.close(descriptor)
    }

    package func reset() {
        Sockets.resetOnClose(descriptor)
        close()
    }
}

/// How many sockets of this process are connections to a port of this host, or attempts to connect
/// to it. Sockets that have been closed are not counted, even if the kernel is still busy with the
/// connection, nor is another process's connection whose client was given the same port.
package func openConnections(toPort port: UInt16) -> Int {
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
    // Counted by inode: the table changes while it is read, and a line may occur twice.
    var inodes: Set<Substring> = []
    for line in table.split(separator: "\n").dropFirst() {
        let fields = line.split(separator: " ")
        if fields.count > 9, fields[2].hasSuffix(suffix), fields[9] != "0" {
            inodes.insert(fields[9])
        }
    }
    return inodes.intersection(openSockets()).count
}

/// The inodes of this process's sockets.
private func openSockets() -> Set<Substring> {
    var inodes: Set<Substring> = []
    let folder = "/proc/self/fd"
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
        let target = try? FileManager.default.destinationOfSymbolicLink(
            atPath: folder + "/" + name)
        guard let target, target.hasPrefix("socket:["), target.hasSuffix("]") else { continue }
        inodes.insert(target.dropFirst("socket:[".count).dropLast())
    }
    return inodes
}

/// Everything that can be read from a descriptor now.
package func readable(_ descriptor: Int32) -> String {
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return text }
        text += String(decoding: bytes[..<count], as: UTF8.self)
    }
}
