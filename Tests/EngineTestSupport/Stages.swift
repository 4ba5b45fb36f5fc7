import Addressing
import Engine
import HTTPCore

// Stages as tests need them, and who says which of them apply.

/// Bytes that live as long as somebody refers to them.
package final class OwnedBytes {
    package let bytes: UnsafeMutableRawBufferPointer

    package init(_ text: some Sequence<UInt8>) {
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
package final class MapStage: BodyStage {
    package let changesLength: Bool
    package let holdsHead = false
    private let change: (UInt8) -> [UInt8]
    /// What it gives out at the end.
    private let last: String

    package init(
        changesLength: Bool = true, last: String = "", _ change: @escaping (UInt8) -> [UInt8]
    ) {
        self.changesLength = changesLength
        self.last = last
        self.change = change
    }

    /// Changes lower case letters to upper case.
    package static var upperCase: MapStage {
        MapStage(changesLength: false) { [97...122 ~= $0 ? $0 - 32 : $0] }
    }
    /// Gives out each byte twice.
    package static var doubling: MapStage { MapStage { [$0, $0] } }

    package func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) { try give(content.flatMap(change), to: next) }

    package func finish(to next: BodyOutlet) throws(ExchangeFault) { try give(last.utf8, to: next) }
}

/// Gives content on as it is, without a copy, until there is too much of it.
package final class LimitStage: BodyStage {
    package let changesLength = false
    package let holdsHead = false
    private var left: Int

    package init(_ limit: Int = .max) { left = limit }

    package func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) {
        guard content.count <= left else { throw .response(.truncatedBody) }
        left -= content.count
        try next(content, owner)
    }

    package func finish(to next: BodyOutlet) throws(ExchangeFault) {}
}

/// Keeps all content until it has ended, and refuses what begins with "bad".
package final class JudgeStage: BodyStage {
    package let changesLength = false
    package let holdsHead = true
    private var kept: [UInt8] = []

    package init() {}

    package func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) { kept += content }

    package func finish(to next: BodyOutlet) throws(ExchangeFault) {
        guard !kept.starts(with: "bad".utf8) else { throw .response(.contentForbidden) }
        try give(kept, to: next)
    }
}

/// Says that the same stages apply to all messages, and counts how often it is asked.
package final class ScriptedStages: BodyStages {
    package var request: () -> [any BodyStage] = { [] }
    package var response: () -> [any BodyStage] = { [] }
    package private(set) var requests = 0
    package private(set) var responses: [String] = []
    /// The last stage that was made for a response.
    package private(set) weak var latest: (any BodyStage)?

    package init() {}

    package func requestStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, to origin: Origin
    ) -> [any BodyStage] {
        requests += 1
        return self.request()
    }

    package func responseStages(
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
package func unchunked(_ text: some StringProtocol) -> String {
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
