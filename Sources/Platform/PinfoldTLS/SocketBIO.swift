import CLinux
import COpenSSL

/// What a connection's BIO knows about what carries its bytes: the socket, or a session over it.
struct SocketState {
    let fileDescriptor: Int32
    /// Bytes that were received before the connection was created: they are read first. Empty if
    /// none are left.
    private(set) var early = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// How many of them have been read.
    private var earlyTaken = 0
    /// The errno of the last receive or send that failed for good.
    var errorNumber: Int32 = 0
    /// Whether a handshake is under way. A library that has failed to send does not read what the
    /// peer sent before it closed the connection: therefore sending pretends to succeed until that
    /// has been read.
    var isHandshaking = false
    /// Whether sending has pretended to succeed; `errorNumber` is why it failed.
    private(set) var hasLostOutput = false
    /// Whether the last receive of this operation got fewer bytes than it had space for, which
    /// means that the socket was empty.
    var isDrained = false
    /// Whether the peer has closed its side.
    var isAtEnd = false
    /// How many receives the current operation may still make: one call of the library can continue
    /// for as long as the peer sends something other than content.
    var receivesLeft = 0
    /// Whether that limit ended the operation, rather than an empty socket.
    var isOverTurn = false
    /// Whether a short receive may be taken as proof that the socket is empty.
    private(set) var trustsShortReceive = false
    /// Handshake messages received after the handshake.
    var lateMessages = 0
    /// Checks a client's first messages to a server; `nil` once there is nothing left to check.
    var gauge: ClientHelloGauge?
    /// The first line of what the peer sent in the handshake, if it is HTTP in clear text.
    private(set) var clearTextLine: String?
    /// Whether the client announced a ClientHello that is too long.
    private(set) var isHelloTooLong = false

    /// The maximum number of receives in one operation: more than a full buffer of content needs.
    static let receivesPerOperation = 8
    /// The maximum number of handshake messages that a peer may send after the handshake, over the
    /// life of a connection: session tickets and key updates, each of which costs as much as many
    /// records of content.
    static let lateMessageLimit = 256

    init(fileDescriptor: Int32) { self.fileDescriptor = fileDescriptor }

    /// Keeps a copy of bytes that were already read from the socket.
    mutating func setEarly(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        forgetEarly()
        early = .allocate(byteCount: bytes.count, alignment: 1)
        early.copyMemory(from: bytes)
    }

    /// Returns as many of the early bytes as there is space for.
    mutating func takeEarly(into bytes: UnsafeMutableRawPointer?, capacity: Int) -> Int {
        let count = min(capacity, early.count - earlyTaken)
        guard let bytes, let start = early.baseAddress else { return 0 }
        bytes.copyMemory(from: start + earlyTaken, byteCount: count)
        earlyTaken += count
        if earlyTaken == early.count { forgetEarly() }
        return count
    }

    mutating func forgetEarly() {
        early.deallocate()
        early = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Whether the library may be given these bytes.
    mutating func admits(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Bool {
        guard gauge != nil else { return !isHelloTooLong }
        guard gauge?.admits(UnsafeRawBufferPointer(start: bytes, count: count)) == true else {
            gauge = nil
            isHelloTooLong = true
            return false
        }
        if gauge?.isWatching == false { gauge = nil }
        return true
    }

    /// Records why sending has failed.
    ///
    /// - Returns: whether sending should pretend to have succeeded.
    mutating func notesLoss(_ number: Int32) -> Bool {
        errorNumber = number
        let isGone = number == EPIPE || number == ECONNRESET
        guard isHandshaking, !isAtEnd, isGone else { return false }
        hasLostOutput = true
        return true
    }

    /// Detects by its first bytes whether what arrived in the handshake is HTTP in clear text: no
    /// TLS record begins with them.
    mutating func noteClearText(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) {
        let received = UnsafeRawBufferPointer(start: bytes, count: count)
        guard clearTextLine == nil, received.starts(with: "HTTP/".utf8) else { return }
        let line = received.prefix(Self.clearTextLineBytes).prefix { (0x20..<0x7F).contains($0) }
        clearTextLine = String(decoding: line, as: UTF8.self)
    }

    /// How many bytes of that line are kept.
    private static let clearTextLineBytes = 100

    var hasTooManyMessages: Bool { lateMessages > Self.lateMessageLimit }

    mutating func beginOperation(trustsShortReceive: Bool = false) {
        self.trustsShortReceive = trustsShortReceive
        receivesLeft = Self.receivesPerOperation
        isOverTurn = false
        // What an earlier operation saw is outdated: bytes may have arrived since, and been
        // reported.
        isDrained = false
    }
}

/// The BIO between a TLS connection and its non-blocking socket. Unlike the library's, it raises no
/// SIGPIPE, retries after EINTR, preserves errno, and knows when the socket was emptied, which
/// saves edge-triggered readers a receive that only returns EAGAIN.
enum SocketBIO {
    /// `BIO_METHOD` is immutable once made, and lives as long as the process.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = Method(pointer: makeMethod())

    private static func makeMethod() -> OpaquePointer? {
        let type = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = BIO_meth_new(type, "socket") else { return nil }
        BIO_meth_set_read_ex(method, receive)
        BIO_meth_set_write_ex(method, send)
        BIO_meth_set_ctrl(method, control)
        return method
    }

    /// A BIO over a socket whose state outlives it; `nil` if the library is out of memory.
    static func make(_ state: UnsafeMutablePointer<SocketState>) -> OpaquePointer? {
        guard let method = method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, state)
        BIO_set_init(bio, 1)
        return bio
    }

    @inline(__always)
    private static func state(_ bio: OpaquePointer?) -> UnsafeMutablePointer<SocketState>? {
        BIO_get_data(bio)?.assumingMemoryBound(to: SocketState.self)
    }

    /// The common start of a receive, whatever carries the bytes: its result if the carrier need
    /// not be asked, or must not be.
    @inline(__always)
    static func begin(
        _ socket: UnsafeMutablePointer<SocketState>, _ bio: OpaquePointer?,
        _ bytes: UnsafeMutablePointer<CChar>?, _ capacity: Int,
        _ count: UnsafeMutablePointer<Int>?
    ) -> Int32? {
        pinfold_BIO_clear_retry_flags(bio)
        guard !socket.pointee.hasTooManyMessages else { return -1 }
        guard socket.pointee.receivesLeft > 0 else {
            socket.pointee.isDrained = false
            socket.pointee.isOverTurn = true
            pinfold_BIO_set_retry_read(bio)
            return -1
        }
        socket.pointee.receivesLeft -= 1
        guard !socket.pointee.early.isEmpty else { return nil }
        socket.pointee.isDrained = false
        let taken = socket.pointee.takeEarly(into: bytes, capacity: capacity)
        count?.pointee = taken
        return socket.pointee.admits(bytes, count: taken) ? 1 : -1
    }

    private static let receive:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, bytes, capacity, count in
            guard let socket = state(bio) else { return -1 }
            if let status = begin(socket, bio, bytes, capacity, count) { return status }
            while true {
                let received = socket_receive(socket.pointee.fileDescriptor, bytes, capacity)
                if received > 0 {
                    socket.pointee.isDrained = received < capacity
                    count?.pointee = received
                    if socket.pointee.isHandshaking {
                        socket.pointee.noteClearText(bytes, count: received)
                    }
                    return socket.pointee.admits(bytes, count: received) ? 1 : -1
                }
                socket.pointee.isDrained = true
                switch Int32(truncatingIfNeeded: -received) {
                case 0:
                    socket.pointee.isAtEnd = true
                    return 0
                case EINTR:
                    continue
                case EAGAIN:
                    pinfold_BIO_set_retry_read(bio)
                    return -1
                case let number:
                    socket.pointee.errorNumber = number
                    return -1
                }
            }
        }

    private static let send:
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, bytes, length, count in
            guard let socket = state(bio) else { return -1 }
            pinfold_BIO_clear_retry_flags(bio)
            while true {
                let sent = socket_send(socket.pointee.fileDescriptor, bytes, length)
                if sent >= 0 {
                    count?.pointee = sent
                    return 1
                }
                switch Int32(truncatingIfNeeded: -sent) {
                case EINTR:
                    continue
                case EAGAIN:
                    pinfold_BIO_set_retry_write(bio)
                    return -1
                case let number:
                    guard socket.pointee.notesLoss(number) else { return -1 }
                    count?.pointee = length
                    return 1
                }
            }
        }

    private static let control:
        @convention(c) (
            OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?
        ) -> Int = { bio, command, _, _ in
            answer(command, isAtEnd: state(bio)?.pointee.isAtEnd == true)
        }

    /// The answer to a control query of the library, whatever carries the bytes.
    static func answer(_ command: Int32, isAtEnd: Bool) -> Int {
        switch command {
        case BIO_CTRL_EOF: isAtEnd ? 1 : 0
        // Nothing is buffered here, so there is nothing to do.
        case BIO_CTRL_FLUSH: 1
        default: 0
        }
    }
}
