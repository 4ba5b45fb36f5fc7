import CachePolicy
import HTTPCore
import Locking

/// The content of a stored response in other codings: made of it when a client needs one, once,
/// and kept beside it in memory.
///
/// They belong to the content. A response that has the same content with another head (after a 304)
/// has the same renditions, and they are gone with the last one that has them: whatever removes a
/// response, an invalidation, a purge or an eviction, removes them as well.
public final class Renditions: Sendable {
    /// Which coding a rendition has; what the numbers mean is up to those who make them.
    public typealias Form = UInt8

    /// What is told to those who wait for one: its content, or `nil` if it was not made.
    public typealias Completion = @Sendable (HeapBody?) -> Void

    /// What there is of a rendition.
    public enum State: Sendable {
        case none
        /// It is being made.
        case underWay
        case ready(HeapBody)
        /// It cannot be made, or is of no use.
        case impossible
    }

    private struct Entry {
        var form: Form
        var state: State
        var waiting: [Completion] = []
    }

    /// There are at most as many as codings.
    private let entries = Locked<[Entry]>([])

    init() {}

    /// What there is of a rendition.
    public func state(_ form: Form) -> State {
        entries.withLock { entries in entries.first { $0.form == form }?.state ?? .none }
    }

    /// Begins to make a rendition, unless there is one, or somebody makes it.
    ///
    /// - Parameter completion: called once, on any thread, if the rendition is being made already,
    ///   as soon as that has ended; otherwise never.
    /// - Returns: what there was. Whoever gets `none` must make it, and end that with
    ///   ``CacheStore/endRendition(_:of:with:)``.
    public func begin(_ form: Form, orWait completion: Completion? = nil) -> State {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.form == form }) else {
                entries.append(Entry(form: form, state: .underWay))
                return .none
            }
            let state = entries[index].state
            if case .underWay = state, let completion { entries[index].waiting.append(completion) }
            return state
        }
    }

    /// There is a rendition from now on.
    fileprivate func keep(_ form: Form, _ body: HeapBody) {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.form == form }) else { return }
            entries[index].state = .ready(body)
        }
    }

    /// Ends what ``begin(_:orWait:)`` has begun, and tells those who wait.
    /// - Parameters:
    ///   - isPossible: whether another attempt may be made if there is none now.
    ///   - body: the rendition, kept or not; `nil` if there is none.
    fileprivate func end(_ form: Form, isPossible: Bool = true, telling body: HeapBody?) {
        let waiting = entries.withLock { entries -> [Completion] in
            guard let index = entries.firstIndex(where: { $0.form == form }) else { return [] }
            let waiting = entries[index].waiting
            entries[index].waiting = []
            if case .underWay = entries[index].state {
                if isPossible {
                    entries.remove(at: index)
                } else {
                    entries[index].state = .impossible
                }
            }
            return waiting
        }
        for completion in waiting { completion(body) }
    }

    /// Bytes of memory that they occupy.
    var memoryBytes: Int {
        entries.withLock { entries in
            entries.reduce(0) { sum, entry in
                guard case .ready(let body) = entry.state else { return sum }
                return sum + body.keptBytes
            }
        }
    }
}

/// How the making of a rendition ended.
public enum RenditionResult: Sendable {
    /// With this content.
    case made([UInt8])
    /// It cannot be made of this content, or is of no use: nobody tries again.
    case impossible
    /// It was not made now.
    case givenUp
}

/// A head for a stored response in another form, with what a decision needs to know about it.
public final class FormHead: Sendable {
    /// In the form in which heads are stored.
    public let bytes: [UInt8]
    public let metadata: StoredMetadata

    public init(bytes: [UInt8], metadata: StoredMetadata) {
        self.bytes = bytes
        self.metadata = metadata
    }

    /// Bytes of memory that it occupies.
    var keptBytes: Int { bytes.count + MemoryLayout<StoredMetadata>.size + 64 }
}

/// The forms of one stored response other than its own.
public final class StoredForms: Sendable {
    /// The contents, which responses with the same content share.
    public let renditions: Renditions
    private let heads = Locked<[Renditions.Form: FormHead]>([:])

    init(_ renditions: Renditions = Renditions()) { self.renditions = renditions }

    /// The head of a form, if it is kept.
    public func head(_ form: Renditions.Form) -> FormHead? { heads.withLock { $0[form] } }

    /// Returns `false` if there is one already.
    fileprivate func keep(_ head: FormHead, _ form: Renditions.Form) -> Bool {
        heads.withLock { heads in
            guard heads[form] == nil else { return false }
            heads[form] = head
            return true
        }
    }
}

extension HeapBody {
    /// Bytes of memory that it occupies, with those of the object.
    var keptBytes: Int { capacity + 64 }
}

extension CachedResponse {
    /// Whether its whole content is in memory, so that any thread can read it at once.
    public var hasContentInMemory: Bool {
        switch body {
        case .contiguous, .file, .heap: true
        case .disk, .arriving, .parts: false
        }
    }

    /// Calls `body` with its whole content; returns `nil` if that is not in memory, or cannot be
    /// read.
    public func withContent<Result>(
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        switch self.body {
        case .contiguous(let view): return withExtendedLifetime(self) { body(view.bytes) }
        case .heap(let heap): return withExtendedLifetime(heap) { body(heap.bytes) }
        case .file(let file):
            let copy = UnsafeMutableRawBufferPointer.allocate(
                byteCount: file.count, alignment: 16)
            defer { copy.deallocate() }
            guard file.read(into: copy, at: 0) else { return nil }
            return body(UnsafeRawBufferPointer(copy))
        case .disk, .arriving, .parts: return nil
        }
    }
}

extension CacheStore {
    /// Content in memory that can be sent; `nil` if there is no memory for it.
    public func body(of content: [UInt8]) -> HeapBody? {
        let body = HeapBody(memory.heap)
        guard content.withUnsafeBytes({ body.append($0) }) else { return nil }
        body.trim()
        return body
    }

    /// Ends the making of a rendition: keeps it beside the response, if memory keeps that and there
    /// is room for both, and tells those who wait for it.
    /// - Parameter isOfUseOnce: whether it is of use although it is not kept; if not, nobody tries
    ///   again.
    /// - Returns: its content, kept or not; `nil` if there is none.
    @discardableResult
    public func endRendition(
        _ form: Renditions.Form, of response: CachedResponse, with result: RenditionResult,
        isOfUseOnce: Bool = true
    ) -> HeapBody? {
        let renditions = response.forms.renditions
        guard case .made(let content) = result else {
            var isPossible = true
            if case .impossible = result { isPossible = false }
            renditions.end(form, isPossible: isPossible, telling: nil)
            return nil
        }
        guard let body = body(of: content) else {
            renditions.end(form, telling: nil)
            return nil
        }
        memory.keep(body, form, beside: response)
        renditions.end(form, isPossible: isOfUseOnce, telling: body)
        return body
    }

    /// Whether memory keeps exactly this response.
    public func keepsInMemory(_ response: CachedResponse) -> Bool {
        memory.withShard(response.keyHash) { shard, _ in shard.contains(response) }
    }

    /// Keeps a head beside a response that memory keeps, as a part of it.
    public func keep(_ head: FormHead, _ form: Renditions.Form, beside response: CachedResponse) {
        guard memory.admits(response.memoryBytes + head.keptBytes) else { return }
        memory.withShard(response.keyHash, adding: response) { shard, _ in
            guard shard.contains(response), response.forms.keep(head, form) else { return }
            _ = shard.grow(response, by: head.keptBytes)
        }
    }
}

extension MemoryTier {
    /// Keeps a rendition beside a response that is kept, or beside the one that has replaced its
    /// head, as a part of it. It is not kept if there is none, or both together are too large.
    fileprivate func keep(
        _ body: HeapBody, _ form: Renditions.Form, beside response: CachedResponse
    ) {
        guard admits(response.memoryBytes + body.keptBytes) else { return }
        withShard(response.keyHash, adding: response) { shard, _ in
            guard shard.grow(response, by: body.keptBytes) else { return }
            response.forms.renditions.keep(form, body)
        }
    }
}
