import CachePolicy
import CacheStore
import ContentCoding
import HTTPCore
import Transformation

/// A stored response in the origin's form that is being translated for a client.
final class StoredTranslation {
    let stored: CachedResponse
    let rules: RouteTransformation
    /// Its age and why it may be used. Its form is that of the stored response, and applies only if
    /// nothing changes.
    let hit: CacheHit
    /// The head with which the origin has just confirmed it; `nil` if the stored head applies.
    let fresh: FreshenedResponse?
    let cacheStatus: CacheStatus?
    let accepted: AcceptedCodings
    /// The head, the plan, and the content read so far.
    let held: HeldResponse

    init(
        _ stored: CachedResponse, _ hit: CacheHit, _ fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?, by rules: RouteTransformation, accepted: AcceptedCodings,
        held: HeldResponse
    ) {
        self.stored = stored
        self.hit = hit
        self.fresh = fresh
        self.cacheStatus = cacheStatus
        self.rules = rules
        self.accepted = accepted
        self.held = held
    }

    /// A head in the form in which heads are stored, with what a decision needs to know about it.
    struct Head {
        let bytes: [UInt8]
        let metadata: StoredMetadata
    }

    /// The head of the result.
    /// - Parameters:
    ///   - change: what has changed.
    ///   - length: bytes of the content.
    func head(_ change: ResponseContent.Change, length: Int, options: PolicyOptions) -> Head? {
        head(
            held.head.withUnsafeBytes {
                rules.head(of: held.response, in: $0.octets, change, length: length)
            }, options)
    }

    /// The part of the result's head that a 304 contains: the content is not known yet.
    func headOfNotModified(options: PolicyOptions) -> Head? {
        var change = ResponseHeadChange(changesContent: true, length: nil)
        change.entityTags = rules.ask.entityTags
        change.contentEncoding = .replaced(ResponseJob.coding(after: held.codings, accepted))
        change.dependsOnAcceptEncoding = !held.codings.isEmpty
        return head(
            held.head.withUnsafeBytes { change.head(of: held.response, in: $0.octets) }, options)
    }

    /// - Parameter message: a head with its empty line.
    private func head(_ message: [UInt8], _ options: PolicyOptions) -> Head? {
        let bytes = Array(message.dropLast(2))
        let times = (fresh?.metadata ?? stored.metadata).times
        return StoredMetadata(
            storedHead: bytes.span, times: times, hasQuery: false, options: options
        ).map { Head(bytes: bytes, metadata: $0) }
    }
}

extension HeldResponse {
    /// A stored response whose content must be changed; `nil` if it is sent unchanged. The rules
    /// that could refuse it accepted it when it was stored.
    convenience init?(
        storedHead: [UInt8], count: UInt64, checks: ResponseChecks, _ work: TransformationWork
    ) throws(StoredTranslationError) {
        // Trailers are about the content as it is stored.
        let head = StoredHead.withoutTrailers(storedHead) + [0x0D, 0x0A]
        guard let response = try? ResponseHead(rewritten: head, answering: .get) else {
            throw .unreadable
        }
        guard response.framing != .none, response.framing != .length(0) else { return nil }
        let plan: ContentPlan?
        do throws(TransformationError) {
            plan = try checks.plan(for: response, in: head.span, answering: .get)
        } catch {
            throw .refused(error)
        }
        guard let plan, plan.changes else { return nil }
        guard let codings = MessageFacts.codings(of: response.fields, in: head.span) else {
            throw .unreadable
        }
        if count > UInt64(plan.maximumBytes) {
            guard plan.larger == .pass else { throw .refused(.tooLarge(plan)) }
            return nil
        }
        self.init(head, response, plan, codings, work)
    }
}

/// Why a stored response cannot be translated.
enum StoredTranslationError: Error {
    /// Its head cannot be read.
    case unreadable
    case refused(TransformationError)
}
