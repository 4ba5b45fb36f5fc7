import CacheStore
import Clocks
import RedisProtocol
import SharedCache

// What this gateway tells the others: what it has purged and removed, that it is there, and who has
// carried out what.
extension LevelLoop {
    // MARK: Purges

    /// Writes purges to the stream. The reply says where they are in it.
    func announce(_ purges: [FleetPurge], _ number: UInt64) {
        fleet.sent = number
        endWaits()
        for (place, purge) in purges.enumerated() {
            let last = place == purges.count - 1 ? number : 0
            let seconds = engine.clock.engineSeconds(purge.seconds) ?? purge.seconds
            let name = engine.names.stream
            guard
                let record = PurgeEntry(
                    purge.pattern, isSoft: purge.isSoft, seconds: seconds,
                    by: fleet.instance.bytes
                )?.record(under: name, by: engine.keyring)
            else {
                giveUp(.announced(purge, number: 0))
                return disconnect(.transport("no record can be made"), because: .refused)
            }
            sendEntry(
                record, to: name, keeping: options.keptPurges,
                .announced(purge, number: last))
        }
    }

    func sendEntry(
        _ record: [UInt8], to stream: [UInt8], keeping count: Int64, _ expected: Expected
    ) {
        send(expected) {
            $0.begin(9)
            $0.add("XADD")
            $0.add(stream)
            // Others would not notice that it has begun anew.
            $0.add("NOMKSTREAM")
            $0.add("MAXLEN")
            $0.add("~")
            $0.add(count)
            $0.add("*")
            $0.add("r")
            $0.add(record)
        }
    }

    func announced(_ purge: FleetPurge, _ number: UInt64, _ reply: RESPValue) {
        if let error = reply.redisError { return failedToAnnounce(purge, error) }
        guard let entry = reply.bytes,
            let position = PurgePosition(epoch: engine.epoch, entry: entry)
        else {
            giveUp(.announced(purge, number: 0))
            return disconnect(.transport("its streams are gone"), because: .begunAnew)
        }
        // Replies that follow this one are to lookups that were sent after it.
        fleet.table?.add(purge, at: position)
        fleet.announced = position
        fleet.written = max(fleet.written, number)
        if fleet.pollAt != nil { fleet.pollAt = now }
        level.shared.withLock { $0.statistics.purgesSent += 1 }
    }

    private func failedToAnnounce(_ purge: FleetPurge, _ error: RedisReplyError) {
        giveUp(.announced(purge, number: 0))
        disconnect(.transport("\(error)"), because: SharedLevelReason(error.code))
    }

    // MARK: Being there

    static let signMilliseconds: Int64 = 2000
    /// How long a gateway is remembered that says nothing, in seconds.
    private static let memberSeconds: Int64 = 86_400

    /// Tells the others that this gateway is there, and what it has carried out.
    func sign() {
        guard isConnected, let position = fleet.purges.follower.position else { return }
        fleet.signAt = now + Self.signMilliseconds
        let report = level.duties.withLock { $0 }?.report() ?? []
        let seconds = engine.clock.engineSeconds(Clock.wallSeconds()) ?? Clock.wallSeconds()
        let name = engine.names.members
        guard
            let member = SharedMember(
                options.gateway, fleet.instance, at: position, seconds: seconds,
                graceMilliseconds: options.graceMilliseconds,
                report: report.count <= SharedMember.maximumReportBytes ? report : []),
            let record = member.record(in: name, by: engine.keyring)
        else { return }
        fleet.signed = position
        send(.told) {
            $0.begin(4)
            $0.add("HSET")
            $0.add(name)
            $0.add(member.field)
            $0.add(record)
        }
        sendExpirySeconds(name)
        sendGet(engine.names.policyVersion, .policyVersion, to: home)
        flush()
    }

    /// It will not be there any longer.
    func signOff() {
        guard isConnected else { return }
        sendFields(
            [SharedMember.field(of: fleet.instance)], of: engine.names.members, .nothing, to: home)
        flush()
    }

    // MARK: Members

    /// Reads the reply to a question for all members.
    private func members(_ reply: RESPValue) -> [SharedMember]? {
        guard reply.redisError == nil, let entries = reply.entries else { return nil }
        let name = engine.names.members
        var members: [SharedMember] = []
        for entry in entries {
            guard let field = entry.key.bytes, let record = entry.value.bytes else { continue }
            do throws(SharedRecordError) {
                let member = try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
                    try SharedMember(bytes, field: field, in: name, by: engine.keyring)
                }
                members.append(member)
            } catch {
                count(SharedLevelReason(error))
                guard case .deleteAndReport = error.handling else { continue }
                sendFields([field], of: name, .nothing, to: home)
            }
        }
        let seconds = engine.clock.engineSeconds(Clock.wallSeconds()) ?? Clock.wallSeconds()
        let gone = members.filter { abs(seconds - $0.seconds) > Self.memberSeconds }
        if !gone.isEmpty { sendFields(gone.map(\.field), of: name, .nothing, to: home) }
        return members.filter { abs(seconds - $0.seconds) <= Self.memberSeconds }
    }

    /// How long ago a member has said that it is there, in seconds.
    private func age(_ member: SharedMember) -> Int64 {
        let seconds = engine.clock.engineSeconds(Clock.wallSeconds()) ?? Clock.wallSeconds()
        // One that is far ahead is as wrong as one that is far behind.
        return abs(seconds - member.seconds)
    }

    /// Whether a member may still use what it has without asking anybody: after that it has
    /// everything confirmed by its origin until it has caught up.
    private func isThere(_ member: SharedMember) -> Bool {
        let grace = member.graceMilliseconds ?? options.graceMilliseconds
        return age(member) * 1000 <= grace + Self.signMilliseconds + 1000
    }

    /// The names of those who may be back, but have neither been heard of for their grace period
    /// nor carried out the purges up to a position: `stale-while-revalidate` has them use once what
    /// they confirm.
    private func away(_ members: [SharedMember], before target: PurgePosition? = nil) -> [String] {
        let there = Set(members.filter { isThere($0) }.map(\.name))
        let names = members.filter { member in
            // One that has been started again is another member.
            guard !there.contains(member.name), member.instance != fleet.instance else {
                return false
            }
            return target.map { member.position.isBefore($0) != false } ?? true
        }
        return Set(names.map { $0.text }).sorted()
    }

    func readMembers(_ reply: RESPValue, _ completion: @Sendable ([FleetMember]?) -> Void) {
        guard let members = members(reply) else { return completion(nil) }
        noteMembers(members)
        let purges = engine.epoch
        let found = members.map { member in
            FleetMember(
                name: member.name, instance: member.field, age: age(member) * 1000,
                isCurrent: member.position.epoch == purges
                    && member.position.isBefore(fleet.purges.cursor) == false,
                isSelf: member.instance == fleet.instance, report: member.report)
        }
        completion(found.sorted { $0.name.lexicographicallyPrecedes($1.name) })
    }

    private func noteMembers(_ members: [SharedMember]) {
        let there = members.filter { isThere($0) && $0.instance != fleet.instance }
        fleet.others = there.map { $0.text }.sorted()
        fleet.away = away(members)
        level.shared.withLock { $0.statistics.members = there.count + 1 }
    }

    // MARK: Who has carried out a purge

    static let confirmationMilliseconds: Int64 = 1000
    private static let confirmationPause: Int64 = 15
    /// Those who wait for confirmations at most.
    private static let confirmationLimit = 512

    func confirm(_ completion: @escaping @Sendable (FleetReceipt) -> Void) {
        guard fleet.confirmations.count < Self.confirmationLimit else {
            return completion(receipt(nil, isRecorded: false))
        }
        fleet.confirmations.append(
            FleetState.Confirmation(
                deadline: now + Self.confirmationMilliseconds, announcement: fleet.sent,
                completion))
        askForConfirmations()
    }

    /// Reads the members for all who wait.
    func askForConfirmations() {
        for confirmation in fleet.confirmations { confirmation.nextAt = nil }
        sendGetAll(engine.names.members, .confirmations, to: home)
        flush()
    }

    func readConfirmations(_ reply: RESPValue) {
        let now = now
        guard let members = members(reply) else { return endConfirmations() }
        noteMembers(members)
        let waiting = fleet.confirmations
        fleet.confirmations = []
        for confirmation in waiting {
            // Who came later asks again.
            let isWritten = fleet.written >= confirmation.announcement
            if isWritten, confirmation.target == nil { confirmation.target = fleet.announced }
            let receipt = receipt(members, of: confirmation.target, isRecorded: true)
            let isConfirmed = isWritten && fleet.hasReadOwn && receipt.unconfirmed.isEmpty
            if isConfirmed || now >= confirmation.deadline {
                confirmation.completion(receipt)
            } else {
                confirmation.nextAt = now + Self.confirmationPause
                fleet.confirmations.append(confirmation)
            }
        }
        updateDeadline()
    }

    private func receipt(
        _ members: [SharedMember]?, of target: PurgePosition? = nil, isRecorded: Bool
    ) -> FleetReceipt {
        var receipt = FleetReceipt(
            isRecorded: isRecorded,
            confirmed: [String(decoding: options.gateway, as: UTF8.self)])
        guard let members else {
            (receipt.unconfirmed, receipt.away) = (fleet.others, fleet.away)
            return receipt
        }
        receipt.away = away(members, before: target)
        for member in members where member.instance != fleet.instance && isThere(member) {
            let hasIt = target.map { member.position.isBefore($0) == false } ?? true
            if hasIt { receipt.confirmed.append(member.text) }
            if !hasIt { receipt.unconfirmed.append(member.text) }
        }
        receipt.confirmed.sort()
        receipt.unconfirmed.sort()
        return receipt
    }

    /// The engine does not say any longer.
    func endConfirmations() {
        let ended = fleet.confirmations
        fleet.confirmations = []
        for confirmation in ended {
            confirmation.completion(receipt(nil, isRecorded: confirmation.target != nil))
        }
    }

    /// When the members are read again.
    var confirmationsAt: Int64? { fleet.confirmations.compactMap(\.nextAt).min() }

    // MARK: A policy

    func publish(_ policy: SharedPolicy, _ completion: @escaping @Sendable (Bool) -> Void) {
        guard let record = policy.record(under: engine.names.policy, by: engine.keyring) else {
            return completion(false)
        }
        for (name, value) in [
            (engine.names.policy, record),
            (engine.names.policyVersion, SharedToken.drawn().bytes),
        ] {
            let isLast = name == engine.names.policyVersion
            send(isLast ? .published(completion) : .told) {
                $0.begin(5)
                $0.add("SET")
                $0.add(name)
                $0.add(value)
                $0.add("EX")
                $0.add(Self.policySeconds)
            }
        }
        flush()
    }

    /// How long a policy stays in the engine without any gateway.
    static let policySeconds: Int64 = 30 * 86_400

    /// Reads the policy if it is another one than before.
    func readPolicyVersion(_ reply: RESPValue) {
        guard let version = reply.bytes, version != fleet.policyVersion else { return }
        sendGet(engine.names.policy, .policy(version: version), to: home)
        flush()
    }

    func readPolicy(_ reply: RESPValue, version: [UInt8]) {
        guard let record = reply.bytes, let duties = level.duties.withLock({ $0 }) else { return }
        fleet.policyVersion = version
        do throws(SharedRecordError) {
            let policy = try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
                try SharedPolicy(bytes, under: engine.names.policy, by: engine.keyring)
            }
            duties.policy(policy.envelope, Int(policy.percent))
        } catch {
            count(SharedLevelReason(error))
        }
    }
}

extension SharedMember {
    /// Its name as text.
    fileprivate var text: String { String(decoding: name, as: UTF8.self) }
}
