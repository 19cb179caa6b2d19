"""The variants of a loader that is tuned: one for each setting that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

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
        own: TunedSetting | None,
        name: str,
    ) -> None:
        """All settings but ``own`` may fail, and then others take their place; with ``None`` that
        is possible for none. ``name`` is that of the loader in profiles."""
        self.shown: LiveLoader | None = None
        """Gets the figures of all settings; set it before the first one is asked for."""
        self._loader, self._order, self._own, self._name = loader, order, own, name
        self._by_setting: dict[TunedSetting, Variant] = {}
        self._renewed: list[Variant] = []
        """Variants whose place others took."""

    def of(self, setting: TunedSetting) -> Variant:
        """Return the variant of ``setting``, which is made when it is first asked for."""
        if setting not in self._by_setting:
            may_fail = self._own is not None and setting != self._own
            made = Variant(self._loader, setting, self._order, may_fail, self._name)
            made.profiler.live = self.shown
            self._by_setting[setting] = made
        return self._by_setting[setting]

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
