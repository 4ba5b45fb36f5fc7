import Glibc

/// A loopback port that refuses whatever is sent to it, and that no other process can take while
/// this is alive.
///
/// The port of a server that has ended would not do: another test's server may be assigned it.
package final class ClosedPort: Sendable {
    package enum Transport: Sendable { case tcp, udp }

    package let number: UInt16
    /// Its address and number, as in a URL.
    package var place: String { "127.0.0.1:\(number)" }

    private let descriptor: Int32

    /// Takes a free port; a machine that has none cannot run tests.
    package init(_ transport: Transport = .tcp) {
        let type = transport == .tcp ? SOCK_STREAM : SOCK_DGRAM
        descriptor = socket(AF_INET, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let socket = descriptor
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        number = withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            precondition(bind(socket, pointer, length) == 0, "no port is free")
            precondition(getsockname(socket, pointer, &length) == 0)
            // It receives only from itself: the kernel refuses datagrams from elsewhere.
            if transport == .udp { precondition(connect(socket, pointer, length) == 0) }
            return UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    deinit { close(descriptor) }
}
