/// A WebSocket connection after the handshake (RFC 6455), without a socket and without a clock:
/// received bytes become events, and messages become bytes to send. It supports the extension
/// permessage-deflate (RFC 7692).
///
///     open ──close()──► closing ──close frame──► closed
///       │                                          ▲
///       └──close frame (answered), or an error─────┘
///
/// Once the connection is closed, a server closes the TCP connection at once; a client waits some
/// time for the server to do so (section 7.1.1).
public struct WebSocketConnection: Sendable {
    /// Which end of the connection this is. A client masks its frames.
    public enum Role: Hashable, Sendable {
        /// The end that requested the connection, and the end that accepted it.
        case client, server
    }

    /// The maximum sizes of messages and frames.
    public struct Limits: Hashable, Sendable {
        /// The maximum size of a received message, in bytes: all its fragments together, and both
        /// before and after decompression.
        public var messageBytes: Int
        /// The size in bytes at which a message is split into fragments when it is sent.
        public var sentFrameBytes: Int

        /// Creates limits; by default 16 MiB for a message and 64 KiB for a frame.
        public init(messageBytes: Int = 16 << 20, sentFrameBytes: Int = 65_536) {
            precondition(messageBytes > 0 && sentFrameBytes > 0, "all limits must be positive")
            (self.messageBytes, self.sentFrameBytes) = (messageBytes, sentFrameBytes)
        }
    }

    /// What was received.
    public enum Event: Hashable, Sendable {
        /// A complete text message.
        case text(String)
        /// A complete binary message.
        case binary([UInt8])
        /// A ping, which has already been answered.
        case ping([UInt8])
        /// A pong: the response to a ping, or an unsolicited one.
        case pong([UInt8])
        /// The peer has sent a close frame, or has answered
        /// ``WebSocketConnection/close(_:reason:)``. It is the last event.
        /// The code is `nil` if the peer sent none.
        case closed(code: UInt16?, reason: String)
        /// The peer violated the protocol and has been sent a close frame. It is the last event.
        case failed(WebSocketError)
    }

    private enum State: Sendable {
        case open
        /// Our close frame has been sent; the peer's has not been received yet.
        case closing
        case closed
    }

    /// Which end of the connection this is.
    public let role: Role
    /// The connection's limits.
    public let limits: Limits
    /// Whether messages may be compressed, as agreed in the handshake.
    public let compresses: Bool
    private let makeMaskingKey: @Sendable () -> UInt32
    private var state = State.open

    /// The bytes of an incomplete frame head.
    private var headBytes: [UInt8] = []
    private var head: WebSocketFrameHead?
    /// How many bytes of the frame's content have been received.
    private var received: UInt64 = 0
    private var control: [UInt8] = []
    /// The opcode of the fragmented message in progress, or `nil` if there is none.
    private var message: WebSocketFrameHead.Opcode?
    private var content: [UInt8] = []
    private var isCompressed = false
    private var textCheck = UTF8Check()

    private var output: [UInt8] = []
    /// If there are several pings, only the last one is answered (section 5.5.3).
    private var pong: [UInt8]?

    /// Creates an open connection.
    ///
    /// - Parameters:
    ///   - compresses: The value from ``WebSocketHandshake/Agreement``.
    ///   - maskingKey: Returns unpredictable numbers, one for each frame that a client sends.
    public init(
        role: Role = .client, limits: Limits = Limits(), compresses: Bool = false,
        maskingKey: @escaping @Sendable () -> UInt32 = { UInt32.random(in: 0...UInt32.max) }
    ) {
        (self.role, self.limits, makeMaskingKey) = (role, limits, maskingKey)
        self.compresses = compresses
    }

    /// Whether messages can be sent.
    public var isOpen: Bool { state == .open }
    /// Whether both ends have closed, or an error occurred: the TCP connection is no longer needed.
    public var isClosed: Bool { state == .closed }
}

// MARK: - Sending

extension WebSocketConnection {
    /// Sends a text message. Returns `false` if the connection is closing or closed.
    @discardableResult
    public mutating func send(text: String) -> Bool { send(Array(text.utf8), .text) }

    /// Sends a binary message. Returns `false` if the connection is closing or closed.
    @discardableResult
    public mutating func send(binary: [UInt8]) -> Bool { send(binary, .binary) }

    /// Sends a ping with at most 125 bytes. Returns `false` if there are more, or if the connection
    /// is closing or closed.
    @discardableResult
    public mutating func ping(_ content: [UInt8] = []) -> Bool {
        guard state == .open, content.count <= WebSocketFrameHead.maximumControlBytes else {
            return false
        }
        append(.ping, content[...])
        return true
    }

    /// Closes the connection. Messages are still received until the peer has closed, too.
    ///
    /// - Parameters:
    ///   - code: A status code from 1000 to 4999 that may be sent (section 7.4), or `nil` to send
    ///     none.
    ///   - reason: The reason. It is truncated at a character boundary if it is longer than 123
    ///     bytes.
    /// - Returns: `false` if the code may not be sent, or if the connection is closing or closed.
    @discardableResult
    public mutating func close(_ code: UInt16? = 1000, reason: String = "") -> Bool {
        guard state == .open, code.map(Self.isSendable) ?? true else { return false }
        appendClose(code, reason)
        state = .closing
        return true
    }

    /// Returns the bytes to be written to the peer, and clears the buffer.
    public mutating func takeOutput() -> [UInt8] {
        if let content = pong.take(), state == .open { append(.pong, content[...]) }
        defer { output = [] }
        return output
    }

    private mutating func send(_ bytes: [UInt8], _ opcode: WebSocketFrameHead.Opcode) -> Bool {
        guard state == .open else { return false }
        let compressed = compresses ? MessageDeflate.compressed(bytes) : nil
        var rest = (compressed ?? bytes)[...]
        var isCompressed = compressed != nil
        var opcode = opcode
        repeat {
            let part = rest.prefix(limits.sentFrameBytes)
            rest = rest.dropFirst(part.count)
            append(opcode, part, isFinal: rest.isEmpty, isCompressed: isCompressed)
            (opcode, isCompressed) = (.continuation, false)
        } while !rest.isEmpty
        return true
    }

    private mutating func append(
        _ opcode: WebSocketFrameHead.Opcode, _ content: ArraySlice<UInt8>, isFinal: Bool = true,
        isCompressed: Bool = false
    ) {
        let key = role == .client ? makeMaskingKey() : nil
        WebSocketFrameHead(
            isFinal: isFinal, isCompressed: isCompressed, opcode: opcode,
            length: UInt64(content.count), maskingKey: key
        ).append(to: &output)
        let start = output.count
        output += content
        if let key { WebSocketFrameHead.mask(&output, from: start, key: key, offset: 0) }
    }

    private mutating func appendClose(_ code: UInt16?, _ reason: String) {
        guard let code else { return append(.close, []) }
        var content = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
        for character in reason.unicodeScalars {
            let bytes = UTF8.encode(character)
            guard content.count + (bytes?.count ?? 0) <= WebSocketFrameHead.maximumControlBytes
            else { break }
            content += bytes ?? UTF8.encodedReplacementCharacter
        }
        append(.close, content[...])
    }

    /// Whether a close frame may have this code (section 7.4, and the IANA registry): not 1004, and
    /// not 1005, 1006 and 1015, which mean that there was none.
    private static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

// MARK: - Receiving

extension WebSocketConnection {
    /// Processes bytes received from the peer, in chunks of any size. Anything after the end is
    /// ignored.
    public mutating func receive(_ bytes: [UInt8]) -> [Event] {
        var events: [Event] = []
        var rest = bytes[...]
        do throws(WebSocketError) {
            while state != .closed, !rest.isEmpty || isFrameComplete {
                if head == nil {
                    try takeHead(&rest)
                    continue
                }
                try takeContent(&rest)
                if isFrameComplete { try endFrame(&events) }
            }
        } catch {
            if state == .open { appendClose(error.closeCode, "") }
            end()
            events.append(.failed(error))
        }
        return events
    }

    private var isFrameComplete: Bool { head.map { $0.length == received } ?? false }

    private mutating func takeHead(_ rest: inout ArraySlice<UInt8>) throws(WebSocketError) {
        headBytes.append(rest.removeFirst())
        guard let (head, _) = try WebSocketFrameHead.parse(headBytes, compressed: compresses) else {
            return
        }
        headBytes.removeAll(keepingCapacity: true)
        guard (head.maskingKey != nil) == (role == .server) else { throw .wrongMasking }
        if !head.opcode.isControl { try begin(head) }
        (self.head, received) = (head, 0)
    }

    /// Begins a message or a fragment.
    private mutating func begin(_ head: WebSocketFrameHead) throws(WebSocketError) {
        if head.opcode == .continuation {
            guard message != nil else { throw .unexpectedContinuation }
        } else {
            guard message == nil else { throw .messageWithinMessage }
            (message, textCheck, isCompressed) = (head.opcode, UTF8Check(), head.isCompressed)
        }
        guard head.length <= UInt64(limits.messageBytes - content.count) else { throw .tooLarge }
    }

    private mutating func takeContent(_ rest: inout ArraySlice<UInt8>) throws(WebSocketError) {
        guard let head else { return }
        let count = Int(min(UInt64(rest.count), head.length - received))
        var part = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        if let key = head.maskingKey {
            WebSocketFrameHead.mask(&part, from: 0, key: key, offset: received)
        }
        received += UInt64(count)
        guard !head.opcode.isControl else {
            control += part
            return
        }
        if message == .text, !isCompressed, !textCheck.take(part) { throw .notUTF8 }
        content += part
    }

    private mutating func endFrame(_ events: inout [Event]) throws(WebSocketError) {
        guard let head = head.take() else { return }
        if head.opcode.isControl {
            defer { control = [] }
            try endControl(head.opcode, &events)
        } else if head.isFinal {
            if isCompressed {
                content = try MessageDeflate.decompressed(content, most: limits.messageBytes)
                if message == .text, !textCheck.take(content) { throw .notUTF8 }
            }
            if message == .text {
                guard textCheck.isComplete else { throw .notUTF8 }
                events.append(.text(String(decoding: content, as: UTF8.self)))
            } else {
                events.append(.binary(content))
            }
            (message, content) = (nil, [])
        }
    }

    private mutating func endControl(
        _ opcode: WebSocketFrameHead.Opcode, _ events: inout [Event]
    ) throws(WebSocketError) {
        switch opcode {
        case .ping:
            if state == .open { pong = control }
            events.append(.ping(control))
        case .pong: events.append(.pong(control))
        default: events.append(try endClose())
        }
    }

    /// Processes the peer's close frame, and answers it unless it is the answer to ours (section
    /// 5.5.1).
    private mutating func endClose() throws(WebSocketError) -> Event {
        guard control.count != 1 else { throw .badClose }
        var code: UInt16?
        if control.count >= 2 {
            let number = UInt16(control[0]) << 8 | UInt16(control[1])
            guard Self.isSendable(number) else { throw .badClose }
            code = number
        }
        guard let reason = String(validating: control.dropFirst(2), as: UTF8.self) else {
            throw .notUTF8
        }
        if state == .open { appendClose(code, "") }
        end()
        return .closed(code: code, reason: reason)
    }

    private mutating func end() {
        state = .closed
        (head, message, pong) = (nil, nil, nil)
        (headBytes, content, control) = ([], [], [])
    }
}
