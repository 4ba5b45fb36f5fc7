import Testing

@testable import PinfoldMetrics

@Suite("Counters by the slots of labels")
struct SlotBlocksTests {
    private func record(
        _ host: LabelIndex, listener: LabelIndex = LabelIndex(slot: 1, use: 0)
    ) -> ExchangeRecord {
        ExchangeRecord(
            route: RouteIndex(listener: listener, host: host), method: .get, status: 200,
            cache: .hit, durationMicroseconds: 1, requestBytes: 0, responseBytes: 1)
    }

    private func count(
        _ metrics: WorkerMetrics, _ host: LabelIndex,
        listener: LabelIndex = LabelIndex(slot: 1, use: 0)
    ) -> UInt64? {
        metrics.block(route: RouteIndex(listener: listener, host: host))?[
            RouteLayout.series(.get, .success, .hit)]
    }

    @Test func `every slot has counters of its own, over the bounds of the directory's parts`() {
        let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
        let slots: [UInt32] = [0, 1, 63, 64, 65, 191, 192, 193, 447, 448, 5000, 70_000]
        for (number, slot) in slots.enumerated() {
            for _ in 0...number {
                metrics.countRejection(host: LabelIndex(slot: slot, use: 0))
                metrics.recordExchange(record(LabelIndex(slot: slot, use: 0)))
            }
        }
        for (number, slot) in slots.enumerated() {
            let index = LabelIndex(slot: slot, use: 0)
            #expect(metrics.rejections(host: index) == UInt64(number) + 1)
            #expect(count(metrics, index) == UInt64(number) + 1)
        }
        #expect(metrics.rejections(host: LabelIndex(slot: 66, use: 0)) == 0)
        #expect(count(metrics, LabelIndex(slot: 66, use: 0)) == nil)
    }

    @Test func `the successor of a name begins at zero, and the former one is there no more`() {
        let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
        let former = LabelIndex(slot: 3, use: 0)
        let successor = LabelIndex(slot: 3, use: 1)
        for _ in 0..<5 {
            metrics.recordExchange(record(former))
            metrics.countRejection(host: former)
            metrics.adjust(.open, host: former, by: 1)
            metrics.recordPinEvaluation(pinset: former, result: .passed)
        }
        // Nothing was counted for it yet: the block there is not its own.
        #expect(count(metrics, successor) == nil)
        #expect(metrics.rejections(host: successor) == 0)
        metrics.recordExchange(record(successor))
        metrics.countRejection(host: successor)
        metrics.adjust(.open, host: successor, by: 1)
        metrics.recordPinEvaluation(pinset: successor, result: .reported)
        #expect(count(metrics, successor) == 1)
        #expect(metrics.rejections(host: successor) == 1)
        #expect(metrics.value(.open, host: successor) == 1)
        #expect(metrics.pinEvaluations(pinset: successor, result: .passed) == 0)
        #expect(metrics.pinEvaluations(pinset: successor, result: .reported) == 1)
        #expect(count(metrics, former) == nil)
        #expect(metrics.rejections(host: former) == 0)
    }

    @Test func `what ends under a former name counts as other, and changes no gauge`() {
        let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
        let former = LabelIndex(slot: 3, use: 0)
        let successor = LabelIndex(slot: 3, use: 1)
        metrics.adjust(.open, host: former, by: 1)
        metrics.adjust(.open, host: successor, by: 1)
        metrics.recordExchange(record(successor))
        metrics.recordExchange(record(former))
        metrics.countRejection(host: former)
        metrics.adjust(.open, host: former, by: -1)
        #expect(count(metrics, successor) == 1)
        // The listener is still there.
        #expect(count(metrics, .other) == 1)
        #expect(metrics.rejections(host: .other) == 1)
        #expect(metrics.value(.open, host: successor) == 1)
        #expect(metrics.value(.open, host: .other) == 0)
        #expect(metrics.value(.upstreamConnectionsOpen) == 1)
    }

    @Test func `a listener's successor begins at zero with every host`() {
        let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
        let host = LabelIndex(slot: 2, use: 4)
        let (former, successor) = (LabelIndex(slot: 1, use: 0), LabelIndex(slot: 1, use: 1))
        metrics.recordExchange(record(host, listener: former))
        #expect(count(metrics, host, listener: successor) == nil)
        metrics.recordExchange(record(host, listener: successor))
        metrics.recordExchange(record(host, listener: former))
        #expect(count(metrics, host, listener: successor) == 1)
        #expect(count(metrics, .other, listener: .other) == 1)
    }

    @Test func `readers see a name's own counts while slots change hands and parts are made`() async
    {
        let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
        let rounds: UInt32 = 300
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for round in 0..<rounds {
                    for slot in [UInt32(1), 2, 64 + round, 1000 + 10 * round] {
                        let index = LabelIndex(slot: slot, use: slot < 64 ? round : 0)
                        for _ in 0..<3 {
                            metrics.recordExchange(record(index))
                            metrics.countRejection(host: index)
                        }
                    }
                }
            }
            group.addTask {
                for round in 0..<rounds {
                    for slot in [UInt32(1), 64 + round, 1000 + 10 * round] {
                        let index = LabelIndex(slot: slot, use: slot < 64 ? round : 0)
                        #expect(metrics.rejections(host: index) <= 3)
                        #expect((count(metrics, index) ?? 0) <= 3)
                    }
                }
            }
        }
        let last = LabelIndex(slot: 1, use: rounds - 1)
        #expect(metrics.rejections(host: last) == 3)
        #expect(count(metrics, last) == 3)
    }
}
