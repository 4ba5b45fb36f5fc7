/// Whose generations are in one record of the engine.
package enum GenerationScope: Sendable, Hashable {
    /// Purges of everything, of hosts by a wildcard, and of prefixes that end before a path does
    /// begin.
    case all
    /// Purges of a host, its prefixes and its URIs.
    case host([UInt8])
    /// Purges of a tag.
    case tag([UInt8])
}

/// The last purge of one pattern.
package struct PurgeMark: Sendable, Hashable {
    package let pattern: PurgePattern
    package let isSoft: Bool
    package let seconds: Int64
    package let position: PurgePosition

    package init(_ pattern: PurgePattern, isSoft: Bool, seconds: Int64, at position: PurgePosition)
    {
        self.pattern = pattern
        self.isSoft = isSoft
        self.seconds = seconds
        self.position = position
    }

    /// The name of its field in the record: a pattern's hard and soft purges are two.
    package var field: [UInt8]? {
        pattern.bytes.withUnsafeBytes { SharedName.digest("pattern", $0) }
            .map { $0 + [UInt8(ascii: isSoft ? "s" : "h")] }
    }

    /// The field's value: the position as text, which a script of the engine compares, and a
    /// record.
    /// - Parameter name: that of the record of the scope.
    package func value(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        guard let field,
            let record = SharedRecord.write(
                .generation,
                [
                    (.pattern, pattern.bytes),
                    (.purge, SharedBytes.number(seconds) + [isSoft ? 1 : 0]),
                    (.position, position.bytes),
                ], under: Generations.name(of: field, in: name), by: keyring)
        else { return nil }
        return position.sortable + record
    }
}

/// Why it is not known whether something was purged: it is not used before its origin has confirmed
/// it.
package enum GenerationError: Error, Sendable, Hashable {
    /// The record is not there: nothing was stored in its scope lately, or it was evicted.
    case missing
    /// It is too long.
    case tooLong
    /// A field of it cannot be read.
    case unreadable(SharedRecordError)
    /// The stream of purges has begun anew since.
    case otherEpoch
    /// The record began later: what was purged before is not known.
    case olderThanRecord
}

/// The purges of a scope, and since when all are known.
///
/// A record that is evicted, expires or is deleted must not make what was purged usable again.
/// Therefore it says since when it is complete (its floor), and nothing older is used on its word;
/// and if it is not there, nothing is.
package struct Generations: Sendable, Hashable {
    package let floor: PurgePosition
    package let marks: [PurgeMark]

    /// Marks of a record at most. If there would be more, the record begins anew, with the floor
    /// where it is then: more is purged than was asked for, never less.
    package static let maximumMarks = 256
    /// The name of the field with the floor.
    package static let floorField = Array("floor".utf8)

    package init(floor: PurgePosition, marks: [PurgeMark]) {
        self.floor = floor
        self.marks = marks
    }

    /// Under which the record of a field is written: nobody can move it to another field.
    static func name(of field: [UInt8], in name: [UInt8]) -> [UInt8] {
        name + [UInt8(ascii: "/")] + field
    }

    /// The value of the field with the floor.
    package static func floorValue(
        _ position: PurgePosition, under name: [UInt8], by keyring: SharedKeyring
    ) -> [UInt8]? {
        SharedRecord.write(
            .floor, [(.position, position.bytes)], under: self.name(of: floorField, in: name),
            by: keyring
        ).map { position.sortable + $0 }
    }

    /// Reads a record: the fields and values of the engine's hash, in any order.
    package init(
        _ fields: [(field: [UInt8], value: [UInt8])], under name: [UInt8],
        by keyring: SharedKeyring
    ) throws(GenerationError) {
        guard !fields.isEmpty else { throw .missing }
        guard fields.count <= Self.maximumMarks + 1 else { throw .tooLong }
        var floor: PurgePosition?
        var marks: [PurgeMark] = []
        for (field, value) in fields {
            do throws(SharedRecordError) {
                if field == Self.floorField {
                    floor = try Self.floor(value, under: name, by: keyring)
                } else {
                    marks.append(try Self.mark(field, value, under: name, by: keyring))
                }
            } catch {
                throw .unreadable(error)
            }
        }
        guard let floor else { throw .missing }
        self.init(floor: floor, marks: marks)
    }

    /// Bytes of the position before the record.
    private static let sortableBytes = 48

    private static func floor(
        _ value: [UInt8], under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) -> PurgePosition {
        let name = Self.name(of: floorField, in: name)
        return try withRecord(.floor, value, under: name, by: keyring) {
            record, bytes throws(SharedRecordError) in
            PurgePosition(
                try record.content(.position, bytes, count: PurgePosition.byteCount))
        }
    }

    private static func mark(
        _ field: [UInt8], _ value: [UInt8], under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) -> PurgeMark {
        let name = Self.name(of: field, in: name)
        return try withRecord(.generation, value, under: name, by: keyring) {
            record, bytes throws(SharedRecordError) in
            let place = try record.required(.pattern)
            let purge = try record.content(.purge, bytes, count: 9)
            let position = PurgePosition(
                try record.content(.position, bytes, count: PurgePosition.byteCount))
            guard let pattern = PurgePattern(UnsafeRawBufferPointer(rebasing: bytes[place])),
                purge[8] <= 1
            else { throw .malformed }
            let mark = PurgeMark(
                pattern, isSoft: purge[8] == 1, seconds: SharedBytes.number(purge, at: 0),
                at: position)
            guard mark.field == field else { throw .malformed }
            return mark
        }
    }

    private static func withRecord<Result>(
        _ kind: SharedRecord.Kind, _ value: [UInt8], under name: [UInt8],
        by keyring: SharedKeyring,
        _ body: (SharedRecord, UnsafeRawBufferPointer) throws(SharedRecordError) -> Result
    ) throws(SharedRecordError) -> Result {
        guard value.count > sortableBytes else { throw .wrongLength }
        let bytes = Array(value[sortableBytes...])
        let result: Swift.Result<Result, SharedRecordError> = bytes.withUnsafeBytes { bytes in
            do throws(SharedRecordError) {
                let record = try SharedRecord.alone(kind, bytes, under: name, by: keyring)
                let position = PurgePosition(
                    try record.content(.position, bytes, count: PurgePosition.byteCount))
                // The script compares the text.
                guard position.sortable.elementsEqual(value[..<sortableBytes]) else {
                    throw .malformed
                }
                return .success(try body(record, bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

/// What the purges of all scopes make of a response.
package enum GenerationVerdict: Sendable, Hashable {
    /// None is about it.
    case current
    /// A soft one is: it is stale since then, in seconds on the engine's clock.
    case stale(since: Int64)
    /// It is not known.
    case unknown(GenerationError)
    case gone

    /// - Parameters:
    ///   - resource: the response's.
    ///   - born: the purge up to which it is known not to be purged.
    ///   - generations: of each of the resource's scopes.
    package init(
        of resource: SharedResource, born: PurgePosition,
        by generations: [Result<Generations, GenerationError>]
    ) {
        self = .current
        for result in generations {
            switch result {
            case .failure(let error): note(.unknown(error))
            case .success(let known): judge(resource, born, known)
            }
        }
    }

    private mutating func judge(
        _ resource: SharedResource, _ born: PurgePosition, _ known: Generations
    ) {
        switch born.isBefore(known.floor) {
        case nil: note(.unknown(.otherEpoch))
        case true?: note(.unknown(.olderThanRecord))
        case false?: break
        }
        for mark in known.marks where mark.pattern.matches(resource) {
            switch born.isBefore(mark.position) {
            case nil: note(.unknown(.otherEpoch))
            case true?: note(mark.isSoft ? .stale(since: mark.seconds) : .gone)
            case false?: break
            }
        }
    }

    /// The strictest counts.
    private mutating func note(_ other: GenerationVerdict) {
        switch (self, other) {
        case (.stale(let one), .stale(let another)): self = .stale(since: min(one, another))
        default: if other.strictness > strictness { self = other }
        }
    }

    private var strictness: Int {
        switch self {
        case .current: 0
        case .stale: 1
        case .unknown: 2
        case .gone: 3
        }
    }
}
