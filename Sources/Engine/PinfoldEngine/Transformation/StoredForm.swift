import CachePolicy
import CacheStore
import ContentCoding
import Documents
import HTTPCore
import Transformation

/// A stored response that is sent to a client in a form of the client's choice.
final class StoredForm {
    let stored: CachedResponse
    /// Its age, and why it may be used. Its form is that of the stored response; conditions and
    /// ranges are evaluated again for the form that is sent.
    let hit: CacheHit
    /// The head with which the origin has just confirmed it; `nil` if the stored head applies.
    let fresh: FreshenedResponse?
    let cacheStatus: CacheStatus?
    /// Why the origin is asked if the form cannot be made; `nil` if the stored form is sent then.
    let reasonToAsk: ForwardReason?
    private(set) var form = ContentForm.stored
    /// Whether the request selects another variant, of which this one is as good once it is
    /// decoded.
    private(set) var isOfOtherVariant = false
    /// The codings in which the content is stored.
    private(set) var codings: [ContentCoding] = []
    /// The most bytes that are decoded, or compressed.
    let maximumBytes: Int
    /// The content read so far, if it has to be read.
    var content: TransformationWork.Holding
    /// Where heads are kept.
    private let store: CacheStore?
    /// The head as it is stored, with an empty line.
    private lazy var head = (fresh?.head ?? Array(stored.head)) + [0x0D, 0x0A]
    /// The same, parsed; `nil` if it cannot be read.
    private lazy var response = try? ResponseHead(rewritten: head, answering: .get)

    init(
        _ stored: CachedResponse, _ hit: CacheHit, _ fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?, orAskBecause reason: ForwardReason?, maximumBytes: Int,
        _ shared: SharedEnvironment
    ) {
        self.stored = stored
        self.hit = hit
        self.fresh = fresh
        self.cacheStatus = cacheStatus
        self.maximumBytes = maximumBytes
        reasonToAsk = reason
        store = shared.store
        content = TransformationWork.Holding(shared.transformationWork)
    }

    /// The rules for its use, as of the head that applies.
    var flags: StoredFlags { (fresh?.metadata ?? stored.metadata).flags }

    /// Chooses the form.
    func choose(for accepted: AcceptedCodings) {
        if flags.contains(.compressible) {
            form = ContentForm(ofCompressible: accepted)
        } else {
            decode(ifNeededFor: accepted)
        }
    }

    /// Chooses whether the content is decoded.
    private func decode(ifNeededFor accepted: AcceptedCodings) {
        form = ContentForm(ofEncoded: codingsOfHead, for: accepted)
        codings = codingsOfHead ?? []
    }

    /// Chooses the decoded form, for a client that is to get no coding at all. Returns false if the
    /// codings are not known.
    func chooseDecoded() -> Bool {
        guard let codings = codingsOfHead, !codings.isEmpty,
            codings.count <= ContentCodings.maximumCodings
        else { return false }
        self.codings = codings
        form = .decoded
        isOfOtherVariant = true
        return true
    }

    private var codingsOfHead: [ContentCoding]? {
        let head = head
        guard let response else { return nil }
        return MessageFacts.codings(of: response.fields, in: head.span)
    }

    /// Whether the content is meant to be a compressed file.
    /// - Parameter path: of the request.
    func isCompressedFile(_ path: [UInt8]) -> Bool {
        let head = head
        guard let response else { return true }
        switch MessageFacts.mediaType(of: response.fields, in: head.span) {
        case .known(let type): return CompressedFile.isMeant(type: type, path: path)
        case .absent: return CompressedFile.isMeant(type: nil, path: path)
        // Its readers do not agree on what it is.
        case .malformed: return true
        }
    }

    /// Whether the content is of a size that is worth compressing, and not too large for it. Short
    /// content hardly becomes shorter, and fits into one packet as it is.
    var isWorthCompressing: Bool {
        let count = stored.contentCount
        return count >= Self.leastCompressed && count <= UInt64(maximumBytes)
    }

    /// The fewest bytes that are compressed.
    private static let leastCompressed: UInt64 = 256

    // MARK: Heads

    /// The number under which the head of the stored form is kept.
    private static let storedHead = Renditions.Form.max

    /// The head of the stored form, which says that it depends on Accept-Encoding.
    func headOfStored(_ options: PolicyOptions) -> FormHead? {
        known(Self.storedHead) {
            var change = ResponseHeadChange(changesContent: false, length: nil)
            change.dependsOnAcceptEncoding = true
            return self.head(change, options, count: self.stored.metadata.bodyBytes)
        }
    }

    /// The head of the chosen form.
    /// - Parameter count: bytes of the content; `nil` if that is not known, because only a
    ///   condition is to be evaluated.
    func head(_ options: PolicyOptions, count: Int?) -> FormHead? {
        guard let rendition = form.rendition, let coding = form.coding else { return nil }
        func make() -> FormHead? {
            var change = ResponseHeadChange(changesContent: true, length: count)
            change.entityTags = form.entityTags
            change.contentEncoding = .replaced(coding)
            change.dependsOnAcceptEncoding = true
            return head(change, options, count: count.map(UInt64.init))
        }
        return count == nil ? make() : known(rendition, make)
    }

    /// Heads made of the stored one are kept beside it.
    private func known(_ form: Renditions.Form, _ make: () -> FormHead?) -> FormHead? {
        guard fresh == nil, let store else { return make() }
        if let known = stored.forms.head(form) { return known }
        guard let made = make() else { return nil }
        store.keep(made, form, beside: stored)
        return made
    }

    private func head(
        _ change: ResponseHeadChange, _ options: PolicyOptions, count: UInt64?
    ) -> FormHead? {
        let head = head
        guard let response else { return nil }
        let bytes = Array(change.head(of: response, in: head.span).dropLast(2))
        let times = (fresh?.metadata ?? stored.metadata).times
        let metadata = StoredMetadata(
            storedHead: bytes.span, times: times, hasQuery: false, options: options)
        guard let metadata else { return nil }
        if !change.changesContent {
            var same = metadata
            same.bodyBytes = count
            return FormHead(bytes: bytes, metadata: same)
        }
        return FormHead(bytes: bytes, metadata: metadata.inOtherCoding(count: count))
    }
}

extension CachedResponse {
    /// Whether its content is still being received.
    var isArriving: Bool { if case .arriving = body { true } else { false } }
}

/// The making of one content in another coding, on any thread.
struct RenditionJob: Sendable {
    let stored: CachedResponse
    /// The stored content, if it had to be read; otherwise it is in memory.
    let content: [UInt8]?
    let codings: [ContentCoding]
    let form: ContentForm
    /// The most bytes that may come of decoding.
    let maximumBytes: Int

    func run(yieldPoint: (() -> Void)? = nil) -> RenditionResult {
        if let content { return content.withUnsafeBytes { make($0, yieldPoint) } }
        return stored.withContent { make($0, yieldPoint) } ?? .givenUp
    }

    private func make(
        _ content: UnsafeRawBufferPointer, _ yieldPoint: (() -> Void)?
    ) -> RenditionResult {
        do throws(ContentCodingError) {
            guard case .encoded(let coding) = form else {
                return .made(
                    try ContentCodings.decode(
                        content, codings: codings, maximum: maximumBytes, yieldPoint: yieldPoint))
            }
            let made = try ContentCodings.encode(content, as: coding, yieldPoint: yieldPoint)
            // What hardly became shorter is not worth its memory.
            return made.count <= content.count - content.count / 16 ? .made(made) : .impossible
        } catch {
            return error == .outOfMemory ? .givenUp : .impossible
        }
    }
}

extension Environment {
    /// Has another thread make a rendition.
    ///
    /// - Parameters:
    ///   - account: the client for which it is made; `nil` if an exchange waits for it, which
    ///     counts as such.
    ///   - end: called on that thread with the result.
    /// - Returns: `false` if too much is waiting, or is being made for this client; `end` is not
    ///   called then.
    func start(
        _ job: RenditionJob, for account: ClientAccount?, claim: TransformationWork.Claim,
        _ end: @escaping @Sendable (RenditionResult) -> Void
    ) -> Bool {
        guard account?.beginRendition() ?? true else { return false }
        let isTaken = shared.transformationWork.run {
            let result = job.run(yieldPoint: YieldPoint.yielding().run)
            if case .made(let content) = result { claim.add(content.count) }
            account?.endRendition()
            end(result)
        }
        if !isTaken { account?.endRendition() }
        return isTaken
    }
}
