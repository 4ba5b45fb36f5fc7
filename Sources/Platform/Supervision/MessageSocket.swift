import CLinux

/// One end of a connection between two processes of this machine, of whole messages, which may
/// carry descriptors: a Unix-domain socket of type SOCK_SEQPACKET (unix(7)).
package final class MessageSocket: Sendable {
    /// The most bytes of a message.
    package static let maximumBytes = 64 << 10
    /// The most descriptors of a message.
    package static let maximumDescriptors = Int(PINFOLD_MAXIMUM_DESCRIPTORS)

    /// Closed with the object.
    package let descriptor: Int32

    /// Takes over a descriptor.
    package init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// A call that failed, with its errno.
    package struct CallError: Error, Equatable, CustomStringConvertible {
        package var call: String
        package var code: Int32

        init(_ call: String, _ code: Int32 = __errno_location().pointee) {
            (self.call, self.code) = (call, code)
        }

        /// Whether the other end is closed. The kernel says something else once if what was sent
        /// there had not been read.
        package var isOfClosedEnd: Bool { code == EPIPE || code == ECONNRESET }

        package var description: String { "\(call): \(String(cString: strerror(code)))" }
    }

    /// Both ends; neither blocks, and no other program inherits them.
    package static func pair() throws(CallError) -> (MessageSocket, MessageSocket) {
        let type = SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { throw CallError("socketpair") }
        for end in ends {
            var bytes = Int32(4 << 20)
            _ = setsockopt(
                end, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        return (MessageSocket(descriptor: ends[0]), MessageSocket(descriptor: ends[1]))
    }

    /// Whether this is a socket of this kind, whose other end a certain process has, of our user.
    package func isConnected(to process: pid_t) -> Bool {
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        var (peer, user) = (pid_t(0), uid_t(0))
        return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0
            && type == Int32(SOCK_SEQPACKET.rawValue)
            && peer_process(descriptor, &peer, &user) == 0 && peer == process && user == geteuid()
    }

    /// Sends a message; the other end gets copies of the descriptors. Does not wait.
    package func send(
        _ bytes: [UInt8], descriptors: [Int32] = []
    ) throws(CallError) {
        precondition(!bytes.isEmpty && bytes.count <= Self.maximumBytes)
        while true {
            let sent = send_with_descriptors(
                descriptor, nil, 0, bytes, bytes.count, descriptors, descriptors.count, 0)
            if sent >= 0 { return }
            guard sent == -Int(EINTR) else { throw CallError("sendmsg", Int32(-sent)) }
        }
    }

    /// What ``receive(waitingAtMost:)`` found.
    package enum Received: Equatable {
        /// A message. The descriptors are the caller's to close.
        case message([UInt8], descriptors: [Int32])
        /// The other end is closed.
        case end
        /// Nothing in time.
        case nothing
    }

    /// Receives a message, after at most so many milliseconds.
    package func receive(
        waitingAtMost milliseconds: Int32 = 0
    ) throws(CallError) -> Received {
        if milliseconds > 0 {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&entry, 1, milliseconds)
        }
        var bytes = [UInt8](repeating: 0, count: Self.maximumBytes)
        var descriptors = [Int32](repeating: -1, count: Self.maximumDescriptors)
        var count = 0
        while true {
            let received = receive_with_descriptors(
                descriptor, &bytes, bytes.count, &descriptors, &count)
            switch received {
            // Told once if the other end was closed with messages unread; its own come after that.
            case -Int(EINTR), -Int(ECONNRESET): continue
            case -Int(EAGAIN): return .nothing
            case 0: return .end
            case ..<0: throw CallError("recvmsg", Int32(-received))
            default:
                return .message(
                    Array(bytes[..<received]), descriptors: Array(descriptors[..<count]))
            }
        }
    }
}
