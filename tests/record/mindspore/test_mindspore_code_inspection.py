"""What code uses, with stand-ins for the framework's classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stepscope.record.mindspore.code_inspection import CodeContents, FrameworkClasses, inspect_code


class Cell:
    def __init__(self, **cells: Any) -> None:
        self._cells = cells

    def construct(self) -> object:
        return None


class Optimizer(Cell):
    pass


class Gradient:
    pass


KINDS = FrameworkClasses(Cell, (Optimizer,), Gradient, ())
optimizer = Optimizer()
net = Cell()
gradient = Gradient()
helpers: list[Callable[[], object]] = []


def trains() -> object:
    return optimizer


def evaluates() -> object:
    return net


def test_a_function_that_names_an_optimizer_trains() -> None:
    assert inspect_code(trains, KINDS).optimizer


def test_a_function_that_names_only_a_net_does_not() -> None:
    assert inspect_code(evaluates, KINDS) == CodeContents(cell=True)


def test_functions_that_are_called_are_looked_into() -> None:
    def step() -> object:
        return trains()

    assert inspect_code(step, KINDS).optimizer
    assert inspect_code(functools.partial(step), KINDS).optimizer


def test_closures_and_inner_functions_are_looked_into() -> None:
    inside = Optimizer()

    def step() -> list[object]:
        return [inside for _ in range(1)]

    def outer() -> Callable[[], object]:
        def inner() -> object:
            return optimizer

        return inner

    assert inspect_code(step, KINDS).optimizer
    assert inspect_code(outer, KINDS).optimizer


def test_of_an_object_only_what_the_code_names_counts() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.optimizer, self.net = Optimizer(), Cell()

        def train(self) -> object:
            return self.update()

        def update(self) -> object:
            return self.optimizer

        def evaluate(self) -> object:
            return self.net

    trainer = Trainer()

    assert inspect_code(trainer.train, KINDS).optimizer
    assert inspect_code(trainer.evaluate, KINDS) == CodeContents(cell=True)


def test_an_attribute_is_no_global_of_the_same_name() -> None:
    class Model:
        def trains(self) -> bool:
            return False

    model = Model()

    def evaluate() -> object:
        return net, model.trains()

    assert inspect_code(evaluate, KINDS) == CodeContents(cell=True)


def test_a_cell_is_judged_by_its_construct() -> None:
    class TrainStep(Cell):
        def construct(self) -> object:
            return self._update()

        def _update(self) -> object:
            return self.optimizer, self.gradient  # type: ignore[attr-defined]

    class Holds(Cell):
        def construct(self) -> object:
            return None

    assert inspect_code(TrainStep(optimizer=Optimizer(), gradient=gradient), KINDS).optimizer
    assert inspect_code(TrainStep(gradient=gradient), KINDS) == CodeContents(cell=True, gradient=True)
    assert inspect_code(Holds(optimizer=Optimizer()), KINDS) == CodeContents(cell=True)


def test_functions_in_circles_end() -> None:
    def one() -> object:
        return two()

    def two() -> object:
        return one(), helpers

    helpers.append(one)

    assert inspect_code(one, KINDS) == CodeContents()


def test_properties_are_not_asked() -> None:
    class Asks(Cell):
        @property
        def value(self) -> object:
            raise AssertionError("code of the user must not run")

        def construct(self) -> object:
            return self.value

    assert inspect_code(Asks(), KINDS) == CodeContents(cell=True)
