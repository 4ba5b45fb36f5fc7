/// A handshake message, assembled from its fragments.
package struct HandshakeMessage: Hashable, Sendable {
    /// The type of message (RFC 8446 §4, RFC 5246 §7.4).
    package enum Kind: UInt8, Sendable {
        case helloRequest = 0
        case clientHello = 1
        case serverHello = 2
        case newSessionTicket = 4
        case certificate = 11
        case serverKeyExchange = 12
        case certificateRequest = 13
        case serverHelloDone = 14
        case certificateVerify = 15
        case clientKeyExchange = 16
        case certificateURL = 21
        case certificateStatus = 22
    }

    package let kind: Kind
    /// The message without its header.
    package let body: [UInt8]

    package init(kind: Kind, body: [UInt8]) {
        self.kind = kind
        self.body = body
    }
}

/// One direction of a TLS connection, parsed up to where encryption begins: records, and the
/// messages in them, however fragmented (RFC 8446 §5.1, RFC 5246 §6.2.1).
///
/// It is stricter than a peer may be: a fragment is never empty, nothing comes between the
/// fragments of a message, an alert is one record. So the bytes can be read in one way only.
package struct HandshakeStream {
    /// What the bytes contain.
    package enum Item: Hashable, Sendable {
        case message(HandshakeMessage)
        case alert(isFatal: Bool, code: UInt8)
        /// What follows is encrypted, and is not examined.
        case changeCipherSpec
    }

    /// How records that are not handshake records are interpreted.
    package enum Stage: Hashable, Sendable {
        /// A ChangeCipherSpec ends what is not encrypted: before TLS 1.3, and as long as the
        /// version is not known.
        case upToEncryption
        /// Around the second ClientHello of TLS 1.3 a ChangeCipherSpec has no meaning and is
        /// ignored (RFC 8446 §D.4). So is early data, if the client has announced it: the server
        /// skips it (§4.2.10).
        case afterRetry(skipsEarlyData: Bool)
    }

    /// Limits, in bytes unless noted.
    package struct Limits: Sendable {
        /// For everything before encryption begins, including record headers.
        package var total = 192 * 1024
        /// For the message with the certificates: the same as the TLS library's own limit.
        package var certificates = 100 * 1024
        /// For a ClientHello: those with post-quantum key shares and tickets have 4 KiB.
        package var clientHello = 16 * 1024
        /// For any other message: the list of authorities in a CertificateRequest may be long.
        package var message = 64 * 1024
        /// The number of warning alerts.
        package var alerts = 4
        /// The number of meaningless ChangeCipherSpecs.
        package var cipherChanges = 4

        package init() {}
    }

    private enum Content: UInt8 {
        case changeCipherSpec = 20
        case alert = 21
        case handshake = 22
        case applicationData = 23
    }

    private static let recordHeaderBytes = 5
    private static let messageHeaderBytes = 4
    /// RFC 8446 §5.1.
    private static let recordBytes = 16 * 1024
    /// What encryption may add to a record (RFC 8446 §5.2).
    private static let encryptionBytes = 256

    private let limits: Limits
    private let stage: Stage
    private var taken = 0
    private var alerts = 0
    private var cipherChanges = 0
    private var header: [UInt8] = []
    private var content = Content.handshake
    private var recordLeft = 0
    /// The current message including its header; for other content, what has arrived of it.
    private var gathered: [UInt8] = []

    /// Whether encryption has begun.
    package private(set) var isOver = false
    /// The version in the last record's header.
    package private(set) var recordVersion: UInt16 = 0

    package init(limits: Limits = Limits(), stage: Stage = .upToEncryption) {
        self.limits = limits
        self.stage = stage
    }

    /// Whether it is between two records and not inside a message.
    package var isBetweenMessages: Bool { recordLeft == 0 && header.isEmpty && gathered.isEmpty }

    /// Consumes as many bytes from the beginning of the data as the next item needs.
    ///
    /// - Returns: the item that they complete; `nil` if they are used up, or encryption has begun.
    /// - Throws: the first error. No more bytes may be consumed after that.
    package mutating func next(
        _ bytes: inout Slice<UnsafeRawBufferPointer>
    ) throws(TLSWireError) -> Item? {
        while !bytes.isEmpty, !isOver {
            // What is within the limit is examined first, so that the error does not depend on how
            // the bytes arrive.
            let allowed = limits.total - taken
            guard allowed > 0 else { throw .tooLong("the handshake") }
            if recordLeft == 0 {
                taken += 1
                try addToHeader(bytes.removeFirst())
                continue
            }
            let part = bytes.prefix(min(recordLeft, missing, allowed))
            bytes = bytes.dropFirst(part.count)
            recordLeft -= part.count
            taken += part.count
            gathered.append(contentsOf: part)
            if let item = try finish() { return item }
        }
        return nil
    }

    /// The number of bytes that the current header or message still needs; other content is taken
    /// whole.
    private var missing: Int {
        guard content == .handshake else { return recordLeft }
        guard gathered.count >= Self.messageHeaderBytes else {
            return Self.messageHeaderBytes - gathered.count
        }
        return messageBytes - gathered.count
    }

    /// The size of the current message, including its header, which has been read.
    private var messageBytes: Int {
        Self.messageHeaderBytes + gathered[1...3].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func addToHeader(_ byte: UInt8) throws(TLSWireError) {
        header.append(byte)
        // Anything that is not TLS is recognized by its first bytes, without waiting for five of
        // them.
        switch header.count {
        case 1:
            guard let type = Content(rawValue: byte) else { throw .notTLS }
            if type == .applicationData, stage != .afterRetry(skipsEarlyData: true) {
                throw recordVersion != 0 || stage != .upToEncryption
                    ? .unexpected("encrypted data") : .notTLS
            }
            guard gathered.isEmpty || type == content else {
                throw .unexpected("another record within a message")
            }
            content = type
        case 2:
            guard byte == 3 else { throw .notTLS }
        case Self.recordHeaderBytes:
            recordVersion = UInt16(header[1]) << 8 | UInt16(header[2])
            recordLeft = Int(header[3]) << 8 | Int(header[4])
            header.removeAll(keepingCapacity: true)
            guard recordLeft > 0 else { throw .malformed("an empty record") }
            let most = Self.recordBytes + (content == .applicationData ? Self.encryptionBytes : 0)
            guard recordLeft <= most else { throw .tooLong("a record") }
        default: break
        }
    }

    /// The item that has been gathered, if it is complete.
    private mutating func finish() throws(TLSWireError) -> Item? {
        switch content {
        case .handshake: return try finishMessage()
        case .alert:
            guard gathered.count + recordLeft == 2, gathered[0] == 1 || gathered[0] == 2 else {
                throw .malformed("an alert")
            }
            guard recordLeft == 0 else { return nil }
            alerts += 1
            guard alerts <= limits.alerts else { throw .tooLong("the series of alerts") }
            defer { gathered.removeAll() }
            return .alert(isFatal: gathered[0] == 2, code: gathered[1])
        case .changeCipherSpec:
            guard recordLeft == 0, gathered == [1] else { throw .malformed("a ChangeCipherSpec") }
            if stage != .upToEncryption { return try passOverCipherChange() }
            isOver = true
            return .changeCipherSpec
        case .applicationData:
            gathered.removeAll(keepingCapacity: true)
            return nil
        }
    }

    private mutating func passOverCipherChange() throws(TLSWireError) -> Item? {
        cipherChanges += 1
        guard cipherChanges <= limits.cipherChanges else {
            throw .tooLong("the series of ChangeCipherSpecs")
        }
        gathered.removeAll(keepingCapacity: true)
        return nil
    }

    private mutating func finishMessage() throws(TLSWireError) -> Item? {
        guard gathered.count >= Self.messageHeaderBytes else { return nil }
        guard let kind = HandshakeMessage.Kind(rawValue: gathered[0]) else {
            throw .unexpected("a message of an unknown type")
        }
        // Oversized messages are refused before they have arrived.
        let length = messageBytes - Self.messageHeaderBytes
        switch kind {
        case .clientHello:
            guard length <= limits.clientHello else { throw .tooLong("the ClientHello") }
        case .certificate:
            guard length <= limits.certificates else { throw .tooLong("the certificates") }
        default:
            guard length <= limits.message else { throw .tooLong("a message") }
        }
        guard gathered.count == messageBytes else { return nil }
        let body = Array(gathered.dropFirst(Self.messageHeaderBytes))
        gathered.removeAll()
        return .message(HandshakeMessage(kind: kind, body: body))
    }
}
