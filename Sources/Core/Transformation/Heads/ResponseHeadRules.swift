import HTTPCore
import PinfoldConfiguration

/// What a route's rules change in the heads of responses while they are sent: the fields that
/// `hosts[].response.headers` names, and the name under which the gateway speaks of itself.
///
/// They apply to what is sent, not to what is stored, so that the cache decides by the server's own
/// fields, and other rules apply to stored responses at once.
package struct ResponseHeadRules: Sendable {
    private let fields: HeaderSteps
    /// The gateway's name in Via and Cache-Status; `nil` for its own.
    package let name: GatewayName?

    /// - Returns: `nil` if no head is ever changed.
    package init?(_ rules: HeaderRules, name: GatewayName?) {
        fields = HeaderSteps(rules)
        self.name = name
        if fields.isEmpty, name == nil { return nil }
    }

    /// The new field lines of a head; `nil` if they do not change.
    ///
    /// - Parameters:
    ///   - head: the head as it would be sent, with well-formed lines and without its empty line.
    ///   - start: where the field lines begin.
    ///   - status: the response's status.
    package func fields(
        of head: Span<UInt8>, from start: Int, status: UInt16
    ) -> [UInt8]? {
        var lines = HeadLines(from: start, of: head)
        let parts = status == 206 ? Self.typeOfParts(in: lines, of: head) : nil
        fields.change(&lines, releases: false, isUpdate: status == 304, in: head)
        if let parts { lines.set(.contentType, parts, in: head) }
        name?.replaceOwn(in: &lines, of: head)
        return lines.changed(from: head)
    }

    /// The media type of several ranges, which frames them (RFC 9110 §14.6): it stays.
    private static func typeOfParts(in lines: HeadLines, of head: Span<UInt8>) -> [UInt8]? {
        lines.values(.contentType, in: head).first {
            $0.map(ASCII.lowercased).starts(with: "multipart/byteranges".utf8)
        }
    }
}

extension GatewayName {
    private static let via = HeadName("Via")
    private static let cacheStatus = HeadName("Cache-Status")

    /// The field lines of a reply of the gateway, with the name in place of its own; `nil` if they
    /// do not change.
    package func fields(of head: Span<UInt8>, from start: Int) -> [UInt8]? {
        var lines = HeadLines(from: start, of: head)
        replaceOwn(in: &lines, of: head)
        return lines.changed(from: head)
    }

    /// Puts the name in place of the gateway's own in the lines that it writes: `Via: 1.1 pinfold`
    /// and `Cache-Status: pinfold; …`.
    fileprivate func replaceOwn(in lines: inout HeadLines, of head: Span<UInt8>) {
        let own = Self.own.bytes
        for index in lines.lines.indices {
            if lines.isNamed(Self.via, at: index, in: head) {
                let value = lines.value(at: index, in: head)
                guard value.count == own.count + 4, value.dropFirst(3) == [0x20] + own else {
                    continue
                }
                lines.setValue(at: index, to: value.prefix(4) + bytes)
            } else if lines.isNamed(Self.cacheStatus, at: index, in: head) {
                let value = lines.value(at: index, in: head)
                guard value.starts(with: own + [UInt8(ascii: ";")]) else { continue }
                lines.setValue(at: index, to: bytes + value.dropFirst(own.count))
            }
        }
    }
}

extension HeadLines {
    /// All lines; `nil` if none was changed.
    fileprivate func changed(from head: Span<UInt8>) -> [UInt8]? {
        guard isChanged else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(count)
        write(to: &output, from: head)
        return output
    }
}
