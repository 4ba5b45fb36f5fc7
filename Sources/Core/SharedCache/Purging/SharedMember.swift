import CachePolicy

/// A gateway of the fleet, as it makes itself known to the others.
package struct SharedMember: Sendable, Hashable {
    /// Its name, for those who look.
    package let name: [UInt8]
    /// What distinguishes it from another process of the same name.
    package let instance: SharedToken
    /// Up to which purge it has carried everything out.
    package let position: PurgePosition
    /// When it said so, in seconds on the engine's clock.
    package let seconds: Int64
    /// For how long it uses what it has without hearing from the others, in milliseconds; `nil` if
    /// it does not say, as programs before did not.
    package let graceMilliseconds: Int64?
    /// What it says of itself.
    package let report: [UInt8]

    /// Bytes of a report at most.
    package static let maximumReportBytes = 64 << 10
    /// The longest grace, in milliseconds: a day.
    package static let longestGrace: Int64 = 86_400_000

    /// `nil` if the name or the report is too long.
    package init?(
        _ name: [UInt8], _ instance: SharedToken, at position: PurgePosition, seconds: Int64,
        graceMilliseconds: Int64? = nil, report: [UInt8] = []
    ) {
        guard name.count <= PurgeEntry.maximumGatewayBytes,
            report.count <= Self.maximumReportBytes
        else { return nil }
        self.name = name
        self.instance = instance
        self.position = position
        self.seconds = seconds
        self.graceMilliseconds = graceMilliseconds.map { min(max(0, $0), Self.longestGrace) }
        self.report = report
    }

    /// The field under which it is in the hash of all members.
    package var field: [UInt8] { Self.field(of: instance) }

    package static func field(of instance: SharedToken) -> [UInt8] {
        SharedName.hexadecimal(instance.bytes)
    }

    /// Under which its record is written: nobody can move it to another field.
    private static func name(of field: [UInt8], in members: [UInt8]) -> [UInt8] {
        members + [UInt8(ascii: "/")] + field
    }

    /// The record to be stored.
    /// - Parameter members: the name of the hash.
    package func record(in members: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        let grace = graceMilliseconds.map { [(SharedField.grace, SharedBytes.number($0))] } ?? []
        return SharedRecord.write(
            .member,
            [
                (.token, instance.bytes), (.gateway, name),
                (.purge, SharedBytes.number(seconds) + [0]), (.position, position.bytes),
                (.report, report),
            ] + grace, under: Self.name(of: field, in: members), by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, field: [UInt8], in members: [UInt8],
        by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(
            .member, bytes, under: Self.name(of: field, in: members), by: keyring)
        let instance = SharedToken(
            try record.content(.token, bytes, count: SharedToken.byteCount))
        let position = PurgePosition(
            try record.content(.position, bytes, count: PurgePosition.byteCount))
        let times = try record.content(.purge, bytes, count: 9)
        let seconds: Int64 = SharedBytes.number(times, at: 0)
        var grace: Int64?
        if record.range(.grace) != nil {
            grace = SharedBytes.number(try record.content(.grace, bytes, count: 8), at: 0)
        }
        guard (0...StoredTimes.maximumTime).contains(seconds),
            let member = SharedMember(
                [UInt8](bytes[try record.required(.gateway)]), instance, at: position,
                seconds: seconds, graceMilliseconds: grace,
                report: [UInt8](bytes[try record.required(.report)])),
            member.field == field
        else { throw .malformed }
        self = member
    }
}

/// A key whose responses a gateway has found to be invalid (RFC 9111 §4.4), as it is written to the
/// stream of those.
package struct RemovedKey: Sendable, Hashable {
    package let key: [UInt8]
    /// The URI whose keys are all meant; `nil` if only that one is, as earlier versions say.
    package let uri: [UInt8]?
    /// Who has removed it.
    package let instance: SharedToken

    package init(_ key: [UInt8], uri: [UInt8]? = nil, by instance: SharedToken) {
        self.key = key
        self.uri = uri
        self.instance = instance
    }

    /// The record to be written.
    /// - Parameter name: the stream's.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        var fields: [(SharedField, [UInt8])] = [(.key, key), (.token, instance.bytes)]
        // One that is too long is said by each of its keys.
        if let pattern = uri.map({ PurgePattern.key($0) }), pattern.isWithinLimits {
            fields.append((.pattern, pattern.bytes))
        }
        return SharedRecord.write(.removal, fields, under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.removal, bytes, under: name, by: keyring)
        key = [UInt8](bytes[try record.required(.key)])
        instance = SharedToken(
            try record.content(.token, bytes, count: SharedToken.byteCount))
        guard let place = record.range(.pattern) else {
            uri = nil
            return
        }
        guard case .key(let uri) = PurgePattern(UnsafeRawBufferPointer(rebasing: bytes[place]))
        else { throw .malformed }
        self.uri = uri
    }
}

/// A signed policy on its way to the gateways. What it says is verified by its own signature; the
/// code only says that it was published by somebody who has the fleet's secret.
package struct SharedPolicy: Sendable, Hashable {
    package let envelope: [UInt8]
    /// Which share of the gateways is to take it, 1 to 100.
    package let percent: UInt8

    /// Bytes of an envelope at most.
    package static let maximumBytes = 1 << 20 + 64 << 10

    /// `nil` if it is too large, or the share is none.
    package init?(_ envelope: [UInt8], percent: Int) {
        guard envelope.count <= Self.maximumBytes, (1...100).contains(percent) else { return nil }
        self.envelope = envelope
        self.percent = UInt8(percent)
    }

    /// The record to be stored.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(
            .policy, [(.envelope, envelope), (.share, [percent])], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.policy, bytes, under: name, by: keyring)
        let percent = try record.content(.share, bytes, count: 1)[0]
        guard
            let policy = SharedPolicy(
                [UInt8](bytes[try record.required(.envelope)]), percent: Int(percent))
        else { throw .malformed }
        self = policy
    }
}
