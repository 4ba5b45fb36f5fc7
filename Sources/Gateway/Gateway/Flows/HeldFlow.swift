import HTTPCore
import PinfoldEngine

/// An exchange that the ring or a recording holds: its record, and its texts within limits, in one
/// allocation.
struct HeldFlow: Sendable {
    /// The most bytes of each text. Their ends are numbers of 16 bits.
    struct Limits: Sendable {
        var head = 3072
        var responseHead = 2048
        var detail = 512
        var note = 256

        /// Of the ring: with the record they are less than 9 KiB, the most that an exchange takes
        /// beside its server's certificates, which it shares with others.
        static let ofRing = Limits()
        /// Of a recording, which is to have the heads that occur whole: 54 KiB.
        static let ofRecording = Limits(head: 24_576, responseHead: 24_576, detail: 2048)
    }

    /// What of an exchange is held or recorded besides what the access log has.
    struct Extra {
        var responseHead: [UInt8] = []
        /// Whether it had more bytes.
        var isResponseHeadCut = false
        /// Why it was refused or failed, in words.
        var detail: [UInt8] = []
        /// The bodies that are kept for recordings.
        var contents: KeptContents?
        /// What its server presented.
        var chain: ServerChain?
    }

    let record: FlowRecord
    /// Its number among all that were held; set by the ring.
    var sequence: UInt64 = 0
    /// Whether the request's head, or the response's, has more bytes than are held.
    let isHeadCut: Bool
    let isResponseHeadCut: Bool
    /// Whether the target has more bytes than are held.
    let isTargetCut: Bool
    /// What its server presented; `nil` if it spoke no TLS with one, or if that is not known.
    let chain: ServerChain?

    private let bytes: [UInt8]
    private let ends: Ends
    private let method: ByteRange
    private let target: ByteRange
    private let host: ByteRange

    /// Where each text ends; it begins where the one before it ends.
    private struct Ends {
        var head: UInt16 = 0
        var responseHead: UInt16 = 0
        var detail: UInt16 = 0
        var subject: UInt16 = 0
        var tunnel: UInt16 = 0
        var steps: UInt16 = 0
        var rule: UInt16 = 0
        var reported: UInt16 = 0
        var user: UInt16 = 0
        var way: UInt16 = 0
        var authority: UInt16 = 0
    }

    init(
        _ record: FlowRecord, head: Span<UInt8>, texts: FlowTexts, session: ClientSession?,
        notes: FlowNotes, extra: Extra, limits: Limits = .ofRing
    ) {
        self.record = record
        chain = extra.chain
        let held = head.extracting(first: limits.head)
        isHeadCut = head.count > held.count
        isResponseHeadCut =
            extra.isResponseHeadCut || extra.responseHead.count > limits.responseHead
        (method, target) = (texts.method.cut(to: held.count), texts.target.cut(to: held.count))
        isTargetCut = texts.target.end > held.count
        // A part of it would be another host.
        host = texts.authority.end > held.count ? ByteRange() : texts.authority
        var bytes: [UInt8] = []
        bytes.reserveCapacity(
            held.count + min(extra.responseHead.count, limits.responseHead)
                + min(extra.detail.count, limits.detail)
                + [
                    session?.subjectBytes.count ?? 0, session?.tunnelBytes.count ?? 0,
                    notes.steps.count, notes.rule.count, notes.reported.count, notes.user.count,
                    notes.way.count, notes.authority.count,
                ].reduce(0) { $0 + min($1, limits.note) })
        func add(_ text: [UInt8], _ limit: Int? = nil) -> UInt16 {
            bytes.append(contentsOf: text.prefix(limit ?? limits.note))
            return UInt16(clamping: bytes.count)
        }
        held.withUnsafeBytes { bytes.append(contentsOf: $0) }
        ends = Ends(
            head: UInt16(clamping: bytes.count),
            responseHead: add(extra.responseHead, limits.responseHead),
            detail: add(extra.detail, limits.detail), subject: add(session?.subjectBytes ?? []),
            tunnel: add(session?.tunnelBytes ?? []), steps: add(notes.steps),
            rule: add(notes.rule), reported: add(notes.reported), user: add(notes.user),
            way: add(notes.way), authority: add(notes.authority))
        self.bytes = bytes
    }

    /// The request's head as the client sent it, in the form of HTTP/1; empty if it was not
    /// understood.
    var head: ArraySlice<UInt8> { bytes[..<Int(ends.head)] }
    /// The final response's head as the client got it; empty unless somebody looked when the
    /// request arrived.
    var responseHead: ArraySlice<UInt8> { text(from: ends.head, to: ends.responseHead) }
    /// Why it was refused or failed, in words.
    var detail: String { string(from: ends.responseHead, to: ends.detail) }
    /// The subject of the client's certificate.
    var subject: String { string(from: ends.detail, to: ends.subject) }
    /// `host:port` of the intercepted tunnel that it came through.
    var tunnel: String { string(from: ends.subject, to: ends.tunnel) }
    /// What rules of its route changed in the content.
    var steps: String { string(from: ends.tunnel, to: ends.steps) }
    /// The access rule that decided.
    var rule: String { string(from: ends.steps, to: ends.rule) }
    /// The access rules that only report, separated by commas.
    var reported: String { string(from: ends.rule, to: ends.reported) }
    /// Who was asking.
    var user: String { string(from: ends.reported, to: ends.user) }
    /// The parent that it went through, or the path of the Unix socket that it went to.
    var way: String { string(from: ends.user, to: ends.way) }
    /// `host:port` of a request at a transparent listener.
    var authority: String { string(from: ends.way, to: ends.authority) }
    /// The method as it was sent.
    var methodText: String { String(decoding: head(method), as: UTF8.self) }
    /// `host[:port]` as the request names it; empty if it does not, or not in what is held.
    var hostText: String { String(decoding: head(host), as: UTF8.self) }
    /// The bytes that its texts take.
    var textCapacity: Int { bytes.capacity }
    /// The request target as it was sent.
    var targetBytes: ArraySlice<UInt8> { head(target) }

    private func head(_ range: ByteRange) -> ArraySlice<UInt8> { bytes[range.indices] }

    private func text(from start: UInt16, to end: UInt16) -> ArraySlice<UInt8> {
        bytes[Int(start)..<Int(end)]
    }

    private func string(from start: UInt16, to end: UInt16) -> String {
        String(decoding: text(from: start, to: end), as: UTF8.self)
    }
}

extension HeldFlow.Extra {
    /// What an exchange that has ended leaves.
    init(of exchange: Exchange) {
        responseHead = exchange.remarks.responseHead
        isResponseHeadCut = exchange.remarks.isResponseHeadCut
        if let fault = exchange.remarks.fault { detail = Array(fault.explanation.utf8) }
        contents = exchange.remarks.contents
        chain = exchange.serverChain
    }
}

extension ByteRange {
    /// The part of it that is within as many bytes.
    fileprivate func cut(to count: Int) -> ByteRange {
        let start = min(Int(start), count)
        return ByteRange(from: start, to: max(start, min(Int(end), count)))
    }
}
