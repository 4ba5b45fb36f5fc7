import CLinux
import COpenSSL
import PinfoldTLS
import Testing

/// A client other than ours: `openssl s_client`.
@Suite("A client that is not ours")
struct OpenSSLClientTests {
    @Test(arguments: [("-tls1_2", TLSVersion.tls12), ("-tls1_3", .tls13)])
    func `openssl's client is served`(flag: String, version: TLSVersion) throws {
        let (listener, port) = Self.listen()
        defer { close(listener) }
        let command =
            "printf question | timeout 20 openssl s_client \(flag) -ign_eof -servername a.test "
            + "-alpn h2,http/1.1 -connect 127.0.0.1:\(port) 2>&1"
        let output = try #require(popen(command, "r"))
        let descriptor = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        _ = fcntl_int(descriptor, F_SETFL, O_NONBLOCK)
        let server = try TLSServerConnection(context: .make(), fileDescriptor: descriptor)
        var result = server.handshake()
        while !result.isEnd, Self.wait(descriptor) { result = server.handshake() }
        #expect(result == .complete)
        #expect(server.version == version)
        #expect(server.serverName == "a.test")
        #expect(server.applicationProtocol == "http/1.1")
        var question: [UInt8] = []
        // The first bytes may have arrived with the last of the handshake: read before waiting.
        while true {
            let step = server.readAll()
            question += step.bytes
            guard step.end == .wantRead, question.count < 8, Self.wait(descriptor) else { break }
        }
        #expect(question == Array("question".utf8))
        #expect(server.write("the answer\n") == .bytes(11))
        #expect(server.shutdown())
        shutdown(descriptor, Int32(SHUT_WR))
        let seen = Self.readAll(output)
        #expect(pclose(output) == 0)
        #expect(seen.contains("the answer"))
        #expect(seen.contains("ALPN protocol: http/1.1"))
        #expect(seen.contains("New, TLSv\(version.text), Cipher is"))
    }

    private static func listen() -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                guard bind(descriptor, $0, length) == 0, CLinux.listen(descriptor, 1) == 0,
                    getsockname(descriptor, $0, &length) == 0
                else { fatalError("no listener") }
            }
        }
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    private static func wait(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 20_000) == 1
    }

    private static func readAll(_ file: UnsafeMutablePointer<FILE>) -> String {
        var line = [UInt8](repeating: 0, count: 4096)
        var bytes: [UInt8] = []
        while true {
            let count = fread(&line, 1, line.count, file)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += line.prefix(count)
        }
    }
}
