/// A WebSocket connection after its handshake (RFC 6455): bytes in, events out; messages in, bytes
/// out. It has no socket and no clock. Of extensions it knows permessage-deflate (RFC 7692).
///
///     open ──close()──► closing ──close frame──► closed
///       │                                          ▲
///       └──close frame (answered), or an error─────┘
///
/// Once it is closed a server ends the TCP connection; a client waits for that, for a while
/// (section 7.1.1).
public struct WebSocketConnection: Sendable {
    /// Which end this is: a client masks what it sends.
    public enum Role: Hashable, Sendable {
        /// Who asked for the connection, and who was asked.
        case client, server
    }

    /// What a connection may take.
    public struct Limits: Hashable, Sendable {
        /// Of a message that is received, all its parts together, compressed or not.
        public var messageBytes: Int
        /// A message that is sent has as many parts as are needed, of this size.
        public var sentFrameBytes: Int

        /// 16 MiB a message, and 64 KiB a frame, unless something else is named.
        public init(messageBytes: Int = 16 << 20, sentFrameBytes: Int = 65_536) {
            precondition(messageBytes > 0 && sentFrameBytes > 0, "no room for a message")
            (self.messageBytes, self.sentFrameBytes) = (messageBytes, sentFrameBytes)
        }
    }

    /// What was received.
    public enum Event: Hashable, Sendable {
        /// A whole message in UTF-8.
        case text(String)
        /// A whole message of bytes.
        case binary([UInt8])
        /// It is answered already.
        case ping([UInt8])
        /// The answer to a ping, or one that nobody asked for.
        case pong([UInt8])
        /// The peer has closed, or answered
        /// ``WebSocketConnection/close(_:reason:)``. Nothing follows. The code is nil where
        /// the peer named none.
        case closed(code: UInt16?, reason: String)
        /// The peer broke the rules; it is told so. Nothing follows.
        case failed(WebSocketError)
    }

    private enum State: Sendable {
        case open
        /// Our close frame is out; the peer's is not here yet.
        case closing
        case closed
    }

    /// Which end this is.
    public let role: Role
    /// What the connection may take.
    public let limits: Limits
    /// Whether messages may be compressed, as the handshake has agreed.
    public let compresses: Bool
    private let makeMaskingKey: @Sendable () -> UInt32
    private var state = State.open

    /// Bytes of a head that is not whole yet.
    private var headBytes: [UInt8] = []
    private var head: WebSocketFrameHead?
    /// Bytes of the frame's content that are here.
    private var received: UInt64 = 0
    private var control: [UInt8] = []
    /// What the message in parts is; nil: there is none.
    private var message: WebSocketFrameHead.Opcode?
    private var content: [UInt8] = []
    private var isCompressed = false
    private var textCheck = UTF8Check()

    private var output: [UInt8] = []
    /// Of several pings only the last is answered (section 5.5.3).
    private var pong: [UInt8]?

    /// - Parameters:
    ///   - compresses: what ``WebSocketHandshake/Agreement`` says.
    ///   - maskingKey: makes numbers that nobody can foresee, one for each frame of a client.
    public init(
        role: Role = .client, limits: Limits = Limits(), compresses: Bool = false,
        maskingKey: @escaping @Sendable () -> UInt32 = { UInt32.random(in: 0...UInt32.max) }
    ) {
        (self.role, self.limits, makeMaskingKey) = (role, limits, maskingKey)
        self.compresses = compresses
    }

    /// Whether messages can be sent.
    public var isOpen: Bool { state == .open }
    /// Whether both ends have closed, or an error has: the TCP connection has no more use.
    public var isClosed: Bool { state == .closed }
}

// MARK: - Sending

extension WebSocketConnection {
    /// Sends a text. False: the connection is closing or closed.
    @discardableResult
    public mutating func send(text: String) -> Bool { send(Array(text.utf8), .text) }

    /// Sends bytes. False: the connection is closing or closed.
    @discardableResult
    public mutating func send(binary: [UInt8]) -> Bool { send(binary, .binary) }

    /// Sends a ping of at most 125 bytes. False: it has more, or the connection is closing or
    /// closed.
    @discardableResult
    public mutating func ping(_ content: [UInt8] = []) -> Bool {
        guard state == .open, content.count <= WebSocketFrameHead.maximumControlBytes else {
            return false
        }
        append(.ping, content[...])
        return true
    }

    /// Closes. Messages are received until the peer has closed, too.
    ///
    /// - Parameters:
    ///   - code: 1000 to 4999, of those that may be sent (section 7.4); nil: none is.
    ///   - reason: cut off at a character's end where it is longer than 123 bytes.
    /// - Returns: false: the code may not be sent, or the connection is closing or closed.
    @discardableResult
    public mutating func close(_ code: UInt16? = 1000, reason: String = "") -> Bool {
        guard state == .open, code.map(Self.isSendable) ?? true else { return false }
        appendClose(code, reason)
        state = .closing
        return true
    }

    /// What is to be written to the peer, and is then forgotten here.
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

    /// Codes that a close frame may have (section 7.4, and IANA's registry): not 1004, nor 1005,
    /// 1006 and 1015, which say that there was none.
    private static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

// MARK: - Receiving

extension WebSocketConnection {
    /// Takes bytes of the peer in chunks of any size. What comes after the end is passed over.
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

    /// Begins a message, or a part of one.
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

    /// Takes the peer's close frame, and answers it unless it is the answer (section 5.5.1).
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
