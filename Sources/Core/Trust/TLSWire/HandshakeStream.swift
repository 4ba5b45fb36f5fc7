/// A handshake message, put together from its fragments.
package struct HandshakeMessage: Hashable, Sendable {
    /// What kind of message it is (RFC 8446 §4, RFC 5246 §7.4).
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
    /// Without the header.
    package let body: [UInt8]

    package init(kind: Kind, body: [UInt8]) {
        self.kind = kind
        self.body = body
    }
}

/// One direction of a TLS connection, taken apart up to where encryption begins: records, and the
/// messages that they hold in whatever fragments (RFC 8446 §5.1, RFC 5246 §6.2.1).
///
/// What it is stricter about than a peer may be: a fragment is never empty, nothing comes between
/// the fragments of a message, an alert is one record. So there is one reading of the bytes.
package struct HandshakeStream {
    /// What the bytes have brought.
    package enum Item: Hashable, Sendable {
        case message(HandshakeMessage)
        case alert(isFatal: Bool, code: UInt8)
        /// What follows is encrypted, and is not looked at.
        case changeCipherSpec
    }

    /// What records mean that are not of the handshake.
    package enum Stage: Hashable, Sendable {
        /// A change of cipher is the end of what is not encrypted: before TLS 1.3, and as long as
        /// it is not known which version is spoken.
        case upToEncryption
        /// Around the second ClientHello of TLS 1.3 a change of cipher says nothing, and comes to
        /// nothing (RFC 8446 §D.4). So does early data, if the client has announced it: the server
        /// skips it (§4.2.10).
        case afterRetry(skipsEarlyData: Bool)
    }

    /// How much is taken. All in bytes.
    package struct Limits: Sendable {
        /// Of all that comes before encryption begins, the headers of records included.
        package var total = 192 * 1024
        /// Of the message with the certificates: as many as the library takes by itself.
        package var certificates = 100 * 1024
        /// Of a ClientHello: those with post-quantum key shares and tickets have 4 KiB.
        package var clientHello = 16 * 1024
        /// Of any other message: the list of authorities of a CertificateRequest may be long.
        package var message = 64 * 1024
        /// Of warnings, in number.
        package var alerts = 4
        /// Of changes of cipher that say nothing, in number.
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
    /// The message at hand, its header included; other content, until it is whole.
    private var gathered: [UInt8] = []

    /// Encryption has begun.
    package private(set) var isOver = false
    /// The version that the last record's header says.
    package private(set) var recordVersion: UInt16 = 0

    package init(limits: Limits = Limits(), stage: Stage = .upToEncryption) {
        self.limits = limits
        self.stage = stage
    }

    /// Whether it is between two records and within no message.
    package var isBetweenMessages: Bool { recordLeft == 0 && header.isEmpty && gathered.isEmpty }

    /// Takes bytes of the stream from the front of what is given, as many as the next item needs.
    ///
    /// - Returns: the item that they complete; nil when they are used up, or encryption has begun.
    /// - Throws: the first thing that is wrong. Nothing may be taken after that.
    package mutating func next(
        _ bytes: inout Slice<UnsafeRawBufferPointer>
    ) throws(TLSWireError) -> Item? {
        while !bytes.isEmpty, !isOver {
            if recordLeft == 0 {
                try count(1)
                try addToHeader(bytes.removeFirst())
                continue
            }
            let part = bytes.prefix(min(recordLeft, missing))
            bytes = bytes.dropFirst(part.count)
            recordLeft -= part.count
            try count(part.count)
            gathered.append(contentsOf: part)
            if let item = try finish() { return item }
        }
        return nil
    }

    /// Bytes that the header or the message at hand still needs; other content is taken whole.
    private var missing: Int {
        guard content == .handshake else { return recordLeft }
        guard gathered.count >= Self.messageHeaderBytes else {
            return Self.messageHeaderBytes - gathered.count
        }
        return messageBytes - gathered.count
    }

    /// Of the message whose header is there, the header included.
    private var messageBytes: Int {
        Self.messageHeaderBytes + gathered[1...3].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func count(_ bytes: Int) throws(TLSWireError) {
        taken += bytes
        guard taken <= limits.total else { throw .tooLong("the handshake") }
    }

    private mutating func addToHeader(_ byte: UInt8) throws(TLSWireError) {
        header.append(byte)
        // Told from something else by the first bytes: nobody waits for five of them.
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

    /// The item that what has been gathered is, if it is whole.
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
            guard recordLeft == 0, gathered == [1] else { throw .malformed("a change of cipher") }
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
            throw .tooLong("the series of changes of cipher")
        }
        gathered.removeAll(keepingCapacity: true)
        return nil
    }

    private mutating func finishMessage() throws(TLSWireError) -> Item? {
        guard gathered.count >= Self.messageHeaderBytes else { return nil }
        guard let kind = HandshakeMessage.Kind(rawValue: gathered[0]) else {
            throw .unexpected("a message of another kind")
        }
        // What is too long is told before it has arrived.
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
