/// Reads the announced length of a ClientHello before the library does: the library allocates as
/// many bytes as a client announces, up to 128 KiB, before any of them has arrived.
///
/// The second ClientHello that a client may have to send (RFC 8446 §4.1.4) is checked, too;
/// encrypted messages, and malformed ones, are left to the library.
struct ClientHelloGauge {
    /// The longest ClientHello accepted: as much as fits in one record. One with post-quantum key
    /// shares, tickets and a list of a hundred suites has 4 KiB.
    static let maximumBytes = 16 * 1024

    private static let recordHeaderBytes = 5
    private static let messageHeaderBytes = 4
    private static let changeCipherSpec: UInt32 = 20
    private static let handshake: UInt32 = 22
    private static let clientHello: UInt32 = 1

    /// The bytes received so far of the current header, and their number.
    private var record: UInt64 = 0
    private var recordHeld = 0
    private var message: UInt32 = 0
    private var messageHeld = 0
    /// Bytes still to come of the current record and message.
    private var recordLeft = 0
    private var messageLeft = 0
    private var isWithinHandshake = false

    /// Whether there is still something to check.
    private(set) var isWatching = true
    /// Whether everything after ChangeCipherSpec is encrypted: not in TLS 1.3, where it means
    /// nothing.
    var endsAtCipherChange = false

    /// Processes the next bytes of the stream; returns `false` once a ClientHello is too long.
    mutating func admits(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        while isWatching, let byte = rest.first {
            if recordLeft == 0 {
                rest.removeFirst()
                addToRecordHeader(byte)
                continue
            }
            let content = rest.prefix(recordLeft)
            rest = rest.dropFirst(content.count)
            recordLeft -= content.count
            if isWithinHandshake, !admitsContent(content) { return false }
        }
        return true
    }

    private mutating func addToRecordHeader(_ byte: UInt8) {
        record = record << 8 | UInt64(byte)
        recordHeld += 1
        guard recordHeld == Self.recordHeaderBytes else { return }
        let type = UInt32(record >> 32)
        recordLeft = Int(record & 0xFFFF)
        (record, recordHeld) = (0, 0)
        isWithinHandshake = type == Self.handshake
        isWatching = isWithinHandshake || type == Self.changeCipherSpec && !endsAtCipherChange
    }

    private mutating func admitsContent(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        var rest = bytes
        while let byte = rest.first {
            if messageLeft > 0 {
                let count = min(messageLeft, rest.count)
                messageLeft -= count
                rest = rest.dropFirst(count)
                continue
            }
            rest.removeFirst()
            message = message << 8 | UInt32(byte)
            messageHeld += 1
            guard messageHeld == Self.messageHeaderBytes else { continue }
            messageLeft = Int(message & 0xFF_FFFF)
            if message >> 24 == Self.clientHello, messageLeft > Self.maximumBytes { return false }
            (message, messageHeld) = (0, 0)
        }
        return true
    }
}
