import Addressing
import HTTPCore
import Testing

@testable import Engine

// Stages as tests need them, and who says which of them apply.

/// Bytes that live as long as somebody refers to them.
final class OwnedBytes {
    let bytes: UnsafeMutableRawBufferPointer

    init(_ text: some Sequence<UInt8>) {
        let text = Array(text)
        bytes = .allocate(byteCount: text.count, alignment: 1)
        bytes.copyBytes(from: text)
    }

    /// What is used after that is seen to be wrong.
    deinit {
        for index in bytes.indices { bytes[index] = UInt8(ascii: "#") }
        bytes.deallocate()
    }
}

extension BodyStage {
    fileprivate func give(
        _ text: some Sequence<UInt8>, to next: BodyOutlet
    ) throws(ExchangeFault) {
        let made = OwnedBytes(text)
        try next(UnsafeRawBufferPointer(made.bytes), made)
    }
}

/// Changes each byte as it comes.
final class MapStage: BodyStage {
    let changesLength: Bool
    let holdsHead = false
    private let change: (UInt8) -> [UInt8]
    /// What it gives out at the end.
    private let last: String

    init(changesLength: Bool = true, last: String = "", _ change: @escaping (UInt8) -> [UInt8]) {
        self.changesLength = changesLength
        self.last = last
        self.change = change
    }

    static var upperCase: MapStage {
        MapStage(changesLength: false) { [97...122 ~= $0 ? $0 - 32 : $0] }
    }
    static var doubling: MapStage { MapStage { [$0, $0] } }

    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) { try give(content.flatMap(change), to: next) }

    func finish(to next: BodyOutlet) throws(ExchangeFault) { try give(last.utf8, to: next) }
}

/// Gives content on as it is, without a copy, until there is too much of it.
final class LimitStage: BodyStage {
    let changesLength = false
    let holdsHead = false
    private var left: Int

    init(_ limit: Int = .max) { left = limit }

    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) {
        guard content.count <= left else { throw .response(.truncatedBody) }
        left -= content.count
        try next(content, owner)
    }

    func finish(to next: BodyOutlet) throws(ExchangeFault) {}
}

/// Keeps all content until it has ended, and refuses what begins with "bad".
final class JudgeStage: BodyStage {
    let changesLength = false
    let holdsHead = true
    private var kept: [UInt8] = []

    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) { kept += content }

    func finish(to next: BodyOutlet) throws(ExchangeFault) {
        guard !kept.starts(with: "bad".utf8) else { throw .response(.contentForbidden) }
        try give(kept, to: next)
    }
}

/// Says that the same stages apply to all messages, and counts how often it is asked.
final class ScriptedStages: BodyStages {
    var request: () -> [any BodyStage] = { [] }
    var response: () -> [any BodyStage] = { [] }
    private(set) var requests = 0
    private(set) var responses: [String] = []
    /// The last stage that was made for a response.
    private(set) weak var latest: (any BodyStage)?

    func requestStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, to origin: Origin
    ) -> [any BodyStage] {
        requests += 1
        return self.request()
    }

    func responseStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, of response: StagedResponse,
        from origin: Origin
    ) -> [any BodyStage] {
        let types = response.values(of: "content-type").map { String(decoding: $0, as: UTF8.self) }
        let told = "\(response.status) \(types.joined(separator: ","))"
        responses.append(response.isStored ? told + " stored" : told)
        let stages = self.response()
        latest = stages.last
        return stages
    }
}

/// What a chunked content is, as far as it has come.
func unchunked(_ text: some StringProtocol) -> String {
    var rest = Array(text.utf8)[...]
    var content: [UInt8] = []
    while let end = rest.firstIndex(of: 13), end > rest.startIndex,
        let count = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16), count > 0
    {
        content += rest[(end + 2)...].prefix(count)
        rest = rest[(end + 2)...].dropFirst(count + 2)
    }
    return String(decoding: content, as: UTF8.self)
}
