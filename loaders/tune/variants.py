"""The variants of a loader that is tuned: one for each setting that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.variant import Variant
from pipeprof.model import TunedSetting

if TYPE_CHECKING:
    from pipeprof.loaders.live.live_pass import LiveLoader


class Variants:
    """Makes the variants of one loader, and ends their workers."""

    def __init__(
        self,
        loader: DataLoader[Any],
        order: EpochOrder,
        own: TunedSetting,
        name: str,
    ) -> None:
        """``own`` is the setting of the user's loader. ``name`` is that of the loader in
        profiles."""
        self.can_be_undone = not isinstance(loader.dataset, IterableDataset)
        """Whether other workers can fetch what those of a failed setting did not deliver."""
        self.shown: LiveLoader | None = None
        """Gets the figures of all settings."""
        self._loader, self._order, self._own, self._name = loader, order, own, name
        self._by_setting: dict[TunedSetting, Variant] = {}
        self._renewed: list[Variant] = []
        """Variants whose place others took."""

    def of(self, setting: TunedSetting) -> Variant:
        """Return the variant of ``setting``, which is made when it is first asked for."""
        if setting not in self._by_setting:
            may_fail = self.can_be_undone and setting != self._own
            made = Variant(self._loader, setting, self._order, may_fail, self._name)
            made.profiler.live = self.shown
            self._by_setting[setting] = made
        return self._by_setting[setting]

    def show(self, shown: LiveLoader | None) -> None:
        """Before the first epoch: give the figures of all settings to ``shown``, too."""
        if self.shown is None:
            self.shown = shown
        elif shown is not None:
            self.shown.add(shown.outputs)

    def known(self, setting: TunedSetting) -> Variant | None:
        """Return the variant of ``setting`` if it was made."""
        return self._by_setting.get(setting)

    def all(self) -> Sequence[Variant]:
        """Return all variants of this epoch, those that were renewed included."""
        return [*self._by_setting.values(), *self._renewed]

    def running_with(self, variant: Variant) -> Sequence[Variant]:
        """Return those with workers that run at the same time as those of ``variant``."""
        return [
            each
            for each in self.all()
            if each is not variant and each.running and each.setting.num_workers
        ]

    def end_all_but(self, kept: Variant | None) -> None:
        """End the workers of all variants but ``kept``."""
        for variant in self.all():
            if variant.setting.num_workers and variant.running and variant is not kept:
                variant.end()

    def renew(self, setting: TunedSetting) -> None:
        """Make another variant of ``setting`` when it is next asked for."""
        if setting in self._by_setting:
            self._renewed.append(self._by_setting.pop(setting))

    def forget_renewed(self) -> None:
        """Forget the variants whose place others took, as their workers have ended."""
        self._renewed.clear()
